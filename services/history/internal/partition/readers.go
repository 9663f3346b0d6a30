package partition

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// input is a decoded record of the log. An err says that it must not be skipped.
type input struct {
	source  Source
	seq     uint64
	pending uint64
	what    replica.Input
	err     error
}

// readers hand over what they read: one for the events, never paused, and one for each
// lane, paused while the replica has no room. They must be separate: a single paused
// reader would not see the outcomes that make room. They decode, the loop steps.
type readers struct {
	writers
	in     [Sources]chan input
	failed chan error
	// pending are messages not read yet, as last told.
	pending  [ids.Lanes]atomic.Int64
	counting [ids.Lanes]atomic.Bool
}

func newReaders(w writers) *readers {
	r := &readers{writers: w, failed: make(chan error, 1)}
	for s := range r.in {
		r.in[s] = make(chan input, 8)
	}
	return r
}

// note remembers how much is behind a message of a lane.
func (r *readers) note(in input) {
	if in.source != SourceEvents {
		r.pending[in.source].Store(int64(in.pending))
	}
}

// count asks how much is behind a lane that is paused: its reader does not hear of new
// messages.
func (r *readers) count(lane ids.Lane, read uint64) {
	if !r.counting[lane].CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer r.counting[lane].Store(false)
		if n, err := r.Log.Backlog(r.work, lane, read); err == nil {
			r.pending[lane].Store(int64(n))
		}
		select { // not more often than this
		case <-time.After(countEvery):
		case <-r.work.Done():
		}
	}()
}

// countEvery is how often a paused lane is counted.
const countEvery = time.Second

func (r *readers) unread() (n int64) {
	for i := range r.pending {
		n += r.pending[i].Load()
	}
	return n
}

// follow reads a source for ever.
func (r *readers) follow(ctx context.Context, s Source, from uint64) {
	err := r.read(ctx, s, from, 0, r.in[s])
	if err == nil || ctx.Err() != nil {
		return
	}
	select {
	case r.failed <- err:
	default:
	}
}

// read decodes the messages of a source and hands them over.
func (r *readers) read(ctx context.Context, s Source, from, upTo uint64, to chan<- input) error {
	dec := record.NewDecoder()
	err := r.Log.Read(ctx, s, from, upTo, func(m Record) error {
		in := input{source: s, seq: m.Seq, pending: m.Pending}
		if in.what, in.err = r.decode(ctx, dec, s, m); in.what == nil && in.err == nil {
			return nil // ctx has ended
		}
		if s != SourceEvents {
			r.pending[s].Store(int64(m.Pending) + 1)
		}
		select {
		case to <- in:
			return nil
		case <-ctx.Done():
			return nil
		}
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", s, err)
	}
	return nil
}

// decode turns a message into an input. What cannot be read goes to the quarantine, and the
// rest goes on; but a version that is not known stops everything.
func (r *readers) decode(ctx context.Context, dec *record.Decoder, s Source, m Record) (replica.Input, error) {
	var unknown *logversion.UnknownError
	if s == SourceEvents {
		events, err := dec.Events(m.Data)
		if errors.As(err, &unknown) {
			return nil, fmt.Errorf("message %d: %w", m.Seq, err)
		}
		if err != nil {
			if !r.quarantine(ctx, s, m, m.Data, err) {
				return nil, nil
			}
			events = &replica.Events{}
		}
		events.Seq, events.At = m.Seq, m.Time.UnixMilli()
		return events, nil
	}
	tasks, bad, err := dec.Submits(m.Data)
	if errors.As(err, &unknown) {
		return nil, fmt.Errorf("message %d: %w", m.Seq, err)
	}
	if err != nil {
		bad = []record.Bad{{Batch: m.Data, Err: err}}
	}
	for _, b := range bad {
		if !r.quarantine(ctx, s, m, b.Batch, b.Err) {
			return nil, nil
		}
	}
	return &replica.Submits{Lane: ids.Lane(s), Seq: m.Seq, At: m.Time.UnixMilli(), Bytes: len(m.Data), Tasks: tasks}, nil
}

// quarantine sets a record apart that cannot be read; false = ctx has ended.
func (r *readers) quarantine(ctx context.Context, s Source, m Record, data []byte, reason error) bool {
	r.Metrics.Poison.Add(1)
	r.Logger.Error("the log holds a record that cannot be read; it goes to the quarantine",
		"partition", r.Partition, "source", s.String(), "sequence", m.Seq, "error", reason)
	item := Quarantined{Unreadable: true, Reason: reason.Error(), Subject: m.Subject, Seq: m.Seq, Data: data}
	return r.persist(ctx, writeQuarantine, func(ctx context.Context) error { return r.Quarantine(ctx, item) }) == nil
}

// String names a source.
func (s Source) String() string {
	if s == SourceEvents {
		return "events"
	}
	return "lane " + ids.Lane(s).String()
}

// merge hands over the messages from the levels to the ends, of all sources, in log order, and
// closes to.
func (r *readers) merge(ctx context.Context, from, upTo [Sources]uint64, to chan<- input, failed chan<- error) {
	defer close(to)
	var heads [Sources]input
	var in [Sources]chan input
	for s := range Source(Sources) {
		in[s] = make(chan input, 8)
		go func() {
			defer close(in[s])
			if from[s] > upTo[s] {
				return
			}
			if err := r.read(ctx, s, from[s], upTo[s], in[s]); err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		}()
	}
	for s := range heads {
		heads[s] = <-in[s]
	}
	for {
		next := -1
		for s := range heads {
			if heads[s].seq != 0 && (next < 0 || heads[s].seq < heads[next].seq) {
				next = s
			}
		}
		if next < 0 {
			return
		}
		select {
		case to <- heads[next]:
		case <-ctx.Done():
			return
		}
		heads[next] = <-in[next]
	}
}
