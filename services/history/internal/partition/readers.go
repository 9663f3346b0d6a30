package partition

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// input is a decoded record of the log. An err says that it must not be skipped.
type input struct {
	source  Source
	seq     uint64
	pending uint64
	what    replica.Input
	// passed: it was not decoded, since the replica passes over it as long as a queue has it.
	passed bool
	err    error
}

// tasks is how many it brings.
func (in *input) tasks() int {
	if s, ok := in.what.(*replica.Submits); ok {
		return len(s.Tasks)
	}
	return 0
}

// readers hand over what they read: one for each lane, paused while the replica has no room, and one for each
// queue. They decode, the loop steps. Events are read in a takeover only: this owner appends all later ones.
type readers struct {
	writers
	lanes [ids.Lanes]source
	stop  [ids.Lanes]context.CancelFunc
	// woken is ready when a reader has handed over something, failed when one has ended.
	woken  chan struct{}
	failed chan error
	// pending are messages not read yet, as last reported.
	pending  [ids.Lanes]atomic.Int64
	counting [ids.Lanes]atomic.Bool
	// noted counts the messages of each lane that the loop has noted.
	noted [ids.Lanes]uint64

	queues queueReaders
}

func newReaders(w writers) *readers {
	r := &readers{writers: w, woken: make(chan struct{}, 1), failed: make(chan error, 1), queues: newQueueReaders()}
	for lane := range r.lanes {
		r.lanes[lane] = newSource()
	}
	return r
}

// source is what a reader hands over.
type source struct {
	in chan input
	// head is the next message, if it has been taken out of in.
	head *input
}

func newSource() source { return source{in: make(chan input, readAhead)} }

// sourceOf is that of a lane, or of a queue; nil if its reader does not run.
func (r *readers) sourceOf(at replica.Queue) *source {
	if at.Place == "" {
		return &r.lanes[at.Lane]
	}
	if q := r.queues.running[at]; q != nil {
		return &q.source
	}
	return nil
}

// peek is the next message of a queue, nil if none is there.
func (r *readers) peek(at replica.Queue) *input {
	s := r.sourceOf(at)
	if s != nil && s.head == nil {
		select {
		case in := <-s.in:
			s.head = &in
		default:
		}
	}
	if s == nil {
		return nil
	}
	return s.head
}

// pop takes out what peek has found.
func (r *readers) pop(at replica.Queue) input {
	s := r.sourceOf(at)
	in := *s.head
	s.head = nil
	if at.Place != "" {
		r.queues.unread[at] = int64(in.pending)
	}
	return in
}

func (r *readers) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// readAhead is how many messages a reader is ahead of the loop.
const readAhead = 8

// note remembers how much is behind a message of a lane.
func (r *readers) note(in input) {
	r.pending[in.source].Store(int64(in.pending))
	r.noted[in.source]++
}

// count asks how much is behind a lane that is paused: its reader does not hear of new messages.
func (r *readers) count(lane ids.Lane, read uint64) {
	if !r.counting[lane].CompareAndSwap(false, true) {
		return
	}
	noted := r.noted[lane]
	go func() {
		defer r.counting[lane].Store(false)
		if n, err := r.Log.Backlog(r.work, replica.Queue{Lane: lane}, read); err == nil {
			r.post(r.work, func() {
				if r.noted[lane] == noted { // else it may be read by now, and nothing would correct the count
					r.pending[lane].Store(int64(n))
				}
			})
		}
		backoff.Sleep(r.work, countEvery) // not more often than this
	}()
}

// countEvery is how often a paused lane is counted.
const countEvery = time.Second

// look counts what waits behind a lane without room, or a domain's queue.
func (r *readers) look(l replica.Look) {
	ctx, cancel := context.WithTimeout(r.work, lookTimeout)
	defer cancel()
	r.report(r.counted(ctx, l))
}

// counted counts the messages of the queue before all of those around it and again afterwards: the log goes on meanwhile, and
// what comes of the queue must not hide that something else waits.
func (r *readers) counted(ctx context.Context, l replica.Look) replica.Looked {
	out := replica.Looked{Look: l}
	own, err := r.Log.Backlog(ctx, l.Queue, l.Read)
	for i := 0; err == nil && (i == 0 || out.Unsure && i < looksMax); i++ {
		before, all := own, uint64(0)
		if all, err = r.Log.Backlog(ctx, replica.Queue{Lane: l.Lane, Place: l.In}, l.Read); err == nil {
			own, err = r.Log.Backlog(ctx, l.Queue, l.Read)
		}
		out.All, out.Own, out.Unsure = all, own, all <= own && before != own
	}
	if err != nil {
		return replica.Looked{Look: l}
	}
	return out
}

const (
	// lookTimeout bounds the counts of one look.
	lookTimeout = 5 * time.Second
	// looksMax is how often it is counted if the domain goes on meanwhile.
	looksMax = 3
)

// unread is how many messages of the lanes are not read, and of the queues, or those of one domain.
func (r *readers) unread(domain string) (n int64) {
	for i := range r.pending {
		n += r.pending[i].Load()
	}
	return n + r.queues.behind(domain)
}

// follow reads a source forever.
func (r *readers) follow(ctx context.Context, s Source, from uint64) {
	ctx, r.stop[s] = context.WithCancel(ctx)
	go r.followTo(ctx, s, "", from, r.lanes[s].in)
}

// of is the channel of a source; nil if its reader does not run.
func (r *readers) of(at replica.Queue) <-chan input {
	if s := r.sourceOf(at); s != nil {
		return s.in
	}
	return nil
}

// again reads a lane again: what its reader has handed over is void.
func (r *readers) again(ctx context.Context, lane ids.Lane, from uint64) {
	r.stop[lane]()
	r.lanes[lane] = newSource()
	r.follow(ctx, Source(lane), from)
}

func (r *readers) followTo(ctx context.Context, s Source, by ids.Place, from uint64, to chan<- input) {
	err := r.read(ctx, s, by, from, 0, to)
	if err == nil || ctx.Err() != nil {
		return
	}
	select {
	case r.failed <- err:
	default:
	}
}

// read decodes the messages of a source, or those of a queue, and hands them over.
func (r *readers) read(ctx context.Context, s Source, by ids.Place, from, upTo uint64, to chan<- input) error {
	dec := record.NewDecoder()
	err := r.Log.Read(ctx, s, by, from, upTo, func(m Record) error {
		in := input{source: s, seq: m.Seq, pending: m.Pending}
		switch at := (replica.Queue{Lane: ids.Lane(s), Place: topology.PlaceOfSubmit(r.Partition, m.Subject)}); {
		case s == SourceEvents:
			in.what, in.err = r.decodeTurn(ctx, dec, m)
		case by == "" && (r.queues.splitAt(at) > 0 || r.queues.splitAt(replica.Queue{Lane: at.Lane, Place: at.Place.Parent()}) > 0):
			in.what, in.passed = &replica.Submits{Lane: at.Lane, Place: at.Place, Seq: m.Seq, At: m.Time.UnixMilli()}, true
		default:
			in.what, in.err = r.decodeSubmits(ctx, dec, at, by, m)
		}
		if in.what == nil && in.err == nil {
			return nil // ctx has ended
		}
		if s != SourceEvents && by == "" {
			r.pending[s].Store(int64(m.Pending) + 1)
		}
		select {
		case to <- in:
			r.wake()
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

// decodeTurn turns a message into an input. An unreadable message goes to the quarantine, and the rest goes on; but a
// version that is not known stops everything. Nil: ctx has ended.
func (r *readers) decodeTurn(ctx context.Context, dec *record.Decoder, m Record) (replica.Input, error) {
	var unknown *logversion.UnknownError
	out := &replica.Turn{Seq: m.Seq, At: m.Time.UnixMilli()}
	turn, err := record.ReadTurn(m.Data)
	if err == nil {
		out, err = dec.Turn(&turn, m.Seq, m.Time.UnixMilli())
	}
	if errors.As(err, &unknown) {
		return nil, fmt.Errorf("message %d: %w", m.Seq, err)
	}
	if err != nil && !r.quarantine(ctx, SourceEvents, m, m.Data, err) {
		return nil, nil
	}
	return out, nil
}

// decodeSubmits does the same for a message of a lane, which the reader of a queue may have read.
func (r *readers) decodeSubmits(ctx context.Context, dec *record.Decoder, at replica.Queue, by ids.Place, m Record) (replica.Input, error) {
	var unknown *logversion.UnknownError
	tasks, bad, err := dec.SubmitsOf(at.Place, m.Data, m.Time)
	if errors.As(err, &unknown) {
		return nil, fmt.Errorf("message %d: %w", m.Seq, err)
	}
	if err != nil {
		bad = []record.Bad{{Batch: m.Data, Err: err}}
	}
	for _, b := range bad {
		if !r.quarantine(ctx, Source(at.Lane), m, b.Batch, b.Err) {
			return nil, nil
		}
	}
	return &replica.Submits{
		Lane: at.Lane, Place: at.Place, By: by, Seq: m.Seq, At: m.Time.UnixMilli(), Bytes: len(m.Data), Tasks: tasks,
	}, nil
}

// quarantine sets a record apart that cannot be read; false = ctx has ended.
func (r *readers) quarantine(ctx context.Context, s Source, m Record, data []byte, reason error) bool {
	r.Metrics.Poison.Add(1)
	r.Logger.Error("a record in the log cannot be read and was put into quarantine",
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
