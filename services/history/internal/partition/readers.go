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
	in     [Sources]chan input
	failed chan error
	// pending are messages not read yet, as last told.
	pending  [ids.Lanes]atomic.Int64
	counting [ids.Lanes]atomic.Bool
}

func newReaders() *readers {
	r := &readers{failed: make(chan error, 1)}
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
func (r *readers) count(o *Owner, lane ids.Lane, read uint64) {
	if !r.counting[lane].CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer r.counting[lane].Store(false)
		if n, err := o.Log.Backlog(o.work, lane, read); err == nil {
			r.pending[lane].Store(int64(n))
		}
		select { // not more often than this
		case <-time.After(countEvery):
		case <-o.work.Done():
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
func (o *Owner) follow(ctx context.Context, s Source, from uint64) {
	err := o.read(ctx, s, from, 0, o.readers.in[s])
	if err == nil || ctx.Err() != nil {
		return
	}
	select {
	case o.readers.failed <- err:
	default:
	}
}

// read decodes the messages of a source and hands them over.
func (o *Owner) read(ctx context.Context, s Source, from, upTo uint64, to chan<- input) error {
	dec := record.NewDecoder()
	err := o.Log.Read(ctx, s, from, upTo, func(r Record) error {
		in := input{source: s, seq: r.Seq, pending: r.Pending}
		if in.what, in.err = o.decode(ctx, dec, s, r); in.what == nil && in.err == nil {
			return nil // ctx has ended
		}
		if s != SourceEvents {
			o.readers.pending[s].Store(int64(r.Pending) + 1)
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
func (o *Owner) decode(ctx context.Context, dec *record.Decoder, s Source, r Record) (replica.Input, error) {
	var unknown *logversion.UnknownError
	if s == SourceEvents {
		events, err := dec.Events(r.Data)
		if errors.As(err, &unknown) {
			return nil, fmt.Errorf("message %d: %w", r.Seq, err)
		}
		if err != nil {
			if !o.quarantine(ctx, s, r, r.Data, err) {
				return nil, nil
			}
			events = &replica.Events{}
		}
		events.Seq, events.At = r.Seq, r.Time.UnixMilli()
		return events, nil
	}
	tasks, bad, err := dec.Submits(r.Data)
	if errors.As(err, &unknown) {
		return nil, fmt.Errorf("message %d: %w", r.Seq, err)
	}
	if err != nil {
		bad = []record.Bad{{Batch: r.Data, Err: err}}
	}
	for _, b := range bad {
		if !o.quarantine(ctx, s, r, b.Batch, b.Err) {
			return nil, nil
		}
	}
	return &replica.Submits{Lane: ids.Lane(s), Seq: r.Seq, At: r.Time.UnixMilli(), Bytes: len(r.Data), Tasks: tasks}, nil
}

// quarantine sets a record apart that cannot be read; false = ctx has ended.
func (o *Owner) quarantine(ctx context.Context, s Source, r Record, data []byte, reason error) bool {
	o.Metrics.Poison.Add(1)
	o.Logger.Error("the log holds a record that cannot be read; it goes to the quarantine",
		"partition", o.Partition, "source", s.String(), "sequence", r.Seq, "error", reason)
	item := Quarantined{Unreadable: true, Reason: reason.Error(), Subject: r.Subject, Seq: r.Seq, Data: data}
	return o.persist(ctx, "quarantine", func(ctx context.Context) error { return o.Quarantine(ctx, item) }) == nil
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
func (o *Owner) merge(ctx context.Context, from, upTo [Sources]uint64, to chan<- input, failed chan<- error) {
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
			if err := o.read(ctx, s, from[s], upTo[s], in[s]); err != nil {
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
