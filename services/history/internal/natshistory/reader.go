package natshistory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/archive"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/batcher"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

const (
	// indexBytesMax bounds the index that a reader remembers, about 3 million tasks.
	indexBytesMax = 32 << 20
	// lookupsInFlight rounds of lookupsMax tasks are under way at once, and a list that reads listMsgs messages. They
	// bound what the server sends at a time: a connection with more than 64 MiB on the way is cut off.
	lookupsInFlight = 3
	lookupsMax      = 16
	listMsgs        = 12
	// listsWaiting is how many lists of a domain wait for their turn; more are refused.
	listsWaiting  = 48
	lookupsQueued = 20_000
	// scansMax reads of the log are under way at a time for searches without a hint. Each is for scannedMax tasks at most.
	scansMax   = 2
	scannedMax = 256
	// readTimeout bounds one round of lookups, and one page of a list.
	readTimeout = 5 * time.Second
)

// Reader finds finished and unread tasks by direct gets, without a consumer. It is safe for concurrent use.
type Reader struct {
	cfg     Config
	direct  *natslog.Direct
	lookups *batcher.Batcher[*lookup]
	lists   *turns.Line // one step of one list is read at a time
	// searches are those of the log without a hint.
	searches *batcher.Batcher[*search]

	mu    sync.Mutex
	index *archive.Index

	replicas, logReplicas replicas // of the archive, and of the log
}

// NewReader makes a reader. Its connection must not be the owner's. The caller closes it.
func NewReader(c Config) (*Reader, error) {
	direct, err := natslog.NewDirect(c.JetStream)
	if err != nil {
		return nil, err
	}
	r := &Reader{cfg: c, direct: direct, index: archive.NewIndex(indexBytesMax), lists: turns.NewLine(turns.Config{Most: listsWaiting, Weight: c.Weight})}
	r.lookups = batcher.New(batcher.Config{
		InFlight: lookupsInFlight, BatchMax: lookupsMax, QueuedMax: lookupsQueued, Turns: c.Weight,
	}, r.round)
	r.searches = batcher.New(batcher.Config{InFlight: scansMax, BatchMax: scannedMax, QueuedMax: lookupsQueued}, r.scan)
	return r, nil
}

// Close ends the reader once what is asked was answered, or ctx ends.
func (r *Reader) Close(ctx context.Context) error {
	defer r.direct.Close()
	return errors.Join(r.lookups.Close(ctx), r.searches.Close(ctx))
}

// question is one call of Archived, and lookup one task of it.
type question struct {
	found []*logv1.Record
	mu    sync.Mutex
	left  int
	err   error
	done  chan struct{}
}

type lookup struct {
	task archive.Filed
	of   *question
	nth  int
	// tried are the messages that were found not to hold the task.
	tried []uint64
	// dead is the last end as a dead letter that was found; it may not be the last one.
	dead     *logv1.Record
	answered bool
}

func (l *lookup) answer(found *logv1.Record, err error) {
	l.answered = true
	q := l.of
	q.mu.Lock()
	defer q.mu.Unlock()
	q.found[l.nth] = found
	if err != nil {
		q.err = err
	}
	if q.left--; q.left == 0 {
		close(q.done)
	}
}

// Archived implements partition.Reader. Lookups of all callers that wait share their round trips.
func (r *Reader) Archived(ctx context.Context, wanted []replica.Search) ([]*logv1.Record, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	q := &question{found: make([]*logv1.Record, len(wanted)), left: len(wanted), done: make(chan struct{})}
	for i, s := range wanted {
		if err := r.lookups.Add(s.Domain, &lookup{task: archive.Filed{ID: s.ID, Domain: s.Domain}, of: q, nth: i}, 1); err != nil {
			if errors.Is(err, batcher.ErrFull) {
				err = partition.ErrReaderBusy
			}
			return nil, fmt.Errorf("read the archive: %w", err)
		}
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("read the archive: %w", ctx.Err())
	}
	if q.err != nil {
		return nil, fmt.Errorf("read the archive: %w", q.err)
	}
	return q.found, nil
}
