package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

const (
	// turnBytesMax bounds a turn; a larger batch goes alone.
	turnBytesMax = 512 << 10
	// requestsMax and requestBytesMax bound the batches that wait for a turn. What comes beyond them is dropped, and its
	// sender repeats it.
	requestsMax     = 4096
	requestBytesMax = 64 << 20
)

// request is a batch of events that waits for its turn.
type request struct {
	data   []byte
	events *replica.Events
	// own: the owner has proposed it; proposals are what is in it.
	own       bool
	proposals []replica.Proposal
}

// appender appends turns to the log: what services ask for, and what the owner proposes. What has gathered while one turn is
// under way is the next one. Each is appended behind the last one that this owner knows, so the log refuses it once another
// owner has claimed the partition (I3). Its fields belong to the owner's goroutine, but for arrived and bytes.
type appender struct {
	writers
	arrived chan request
	// bytes is what waits in arrived.
	bytes atomic.Int64
	// own and next go with the next turn: proposals, and a batch that did not fit into the last one.
	own  []request
	next *request
	// ownLeft counts the proposed batches that are not stored, refused what the log does not take of them.
	ownLeft int
	refused []replica.Proposal
	// last is the message of the last turn, at its time, number its number in this epoch.
	last, number uint64
	at           int64
	busy         bool
	// stored is a turn that is stored and that the replica has not taken yet, since its lease does not hold.
	stored *replica.Turn
}

func newAppender(w writers) *appender {
	return &appender{writers: w, arrived: make(chan request, requestsMax)}
}

// listen takes in the batches that services send, until ctx ends. A batch that cannot be read is dropped here, so that the log
// holds none.
func (a *appender) listen(ctx context.Context) error {
	dec := record.NewDecoder()
	return a.Log.Listen(ctx, func(data []byte) {
		events, err := dec.Events(data)
		if err == nil && slices.ContainsFunc(events.Events, func(e taskstate.Event) bool { return !e.Kind.Known() }) {
			err = errors.New("an event of an unknown kind")
		}
		if err != nil {
			a.Metrics.Poison.Add(1)
			a.Logger.Error("a batch of events cannot be read and was dropped", "partition", a.Partition, "error", err)
			return
		}
		if a.bytes.Add(int64(len(data))) <= requestBytesMax {
			select {
			case a.arrived <- request{data: data, events: events}:
				return
			default:
			}
		}
		a.bytes.Add(-int64(len(data)))
	})
}

// open is the channel of arrived batches while a turn may begin, else nil.
func (a *appender) open() chan request {
	if a.busy || a.stored != nil || a.next != nil {
		return nil
	}
	return a.arrived
}

// take takes a batch out of arrived that belongs to the next turn.
func (a *appender) take(r request) {
	a.bytes.Add(-int64(len(r.data)))
	a.next = &r
}

// propose adds what the owner proposes to the next turn.
func (a *appender) propose(batches []proposed) {
	for _, b := range batches {
		events, err := record.NewDecoder().Events(b.data)
		if err != nil {
			panic("partition: " + err.Error()) // it is of our making
		}
		a.own = append(a.own, request{b.data, events, true, b.proposals})
	}
	a.ownLeft += len(batches)
}

// idle tells whether nothing waits and nothing is under way.
func (a *appender) idle() bool {
	return !a.busy && a.stored == nil && a.next == nil && len(a.own) == 0 && len(a.arrived) == 0
}

// gather takes what goes with one turn: the owner's own proposals first.
func (a *appender) gather() (all []request) {
	size := 0
	for {
		var r request
		switch {
		case len(a.own) > 0:
			r = a.own[0]
		case a.next != nil:
			r = *a.next
		default:
			select {
			case r = <-a.arrived:
				a.take(r)
			default:
				return all
			}
		}
		if size += len(r.data); len(all) > 0 && size > turnBytesMax {
			return all
		}
		if r.own {
			a.own = a.own[1:]
		} else {
			a.next = nil
		}
		all = append(all, r)
	}
}

// begin appends the next turn, if something waits and none is under way.
func (a *appender) begin(done func(all []request, seq uint64, at int64, err error)) {
	if a.busy || a.stored != nil {
		return
	}
	all := a.gather()
	if len(all) == 0 {
		return
	}
	a.number++
	turn := record.Turn{LogVersion: a.LogVersion(), Epoch: a.epoch, Number: a.number, At: max(a.at, a.now().MS)}
	for _, r := range all {
		turn.Batches = append(turn.Batches, r.data)
		for i := range r.proposals {
			if r.proposals[i].NotAfter > 0 {
				turn.At = 0 // whether it comes too late, the server's time says
			}
		}
	}
	a.busy = true
	after := a.last
	go func() {
		seq, at, err := a.appendTurn(&turn, after)
		a.post(a.work, func() {
			a.busy = false
			if err == nil {
				a.last, a.at = seq, max(a.at, at)
			}
			done(all, seq, at, err)
		})
	}()
}

// appendTurn appends a turn behind message after, repeating it until it is stored. It returns the time that its events count
// as made. ErrTakenOver: another owner has appended a turn.
func (w writers) appendTurn(turn *record.Turn, after uint64) (seq uint64, at int64, err error) {
	data := turn.Append(nil)
	at = turn.At
	err = w.persist(w.work, writeEvents, func(ctx context.Context) (err error) {
		if seq, err = w.Log.Append(ctx, data, after); err == nil && at > 0 || err != nil && !errors.Is(err, ErrWrongTurn) {
			return err
		}
		// What lies there says whether it was stored, and when.
		last, there, err := w.lastTurn(ctx)
		switch {
		case err != nil:
			return err
		case last.Seq == after:
			return errors.New("a turn was refused, and no other one is there: it may still come")
		case there.Epoch != turn.Epoch || there.Number != turn.Number:
			return ErrTakenOver
		}
		if seq = last.Seq; at == 0 {
			at = last.Time.UnixMilli()
		}
		return nil
	})
	return seq, at, err
}

// lastTurn is the last turn in the log; its sequence is 0 if there is none. What cannot be read is no turn of this owner.
func (w writers) lastTurn(ctx context.Context) (Record, record.Turn, error) {
	last, err := w.Log.LastTurn(ctx)
	if err != nil || last.Seq == 0 {
		return last, record.Turn{}, err
	}
	turn, err := record.ReadTurn(last.Data)
	var unknown *logversion.UnknownError
	if errors.As(err, &unknown) {
		return last, turn, fmt.Errorf("%w: message %d: %w", ErrUnreadable, last.Seq, err)
	}
	if turn.At == 0 {
		turn.At = last.Time.UnixMilli()
	}
	return last, turn, nil
}

// claim appends the first turn of this epoch behind all others: no other owner appends any more, and what lies before it is all
// that was decided. It returns its sequence. If its outcome is not known, the caller claims a new epoch.
func (a *appender) claim(ctx context.Context) (uint64, error) {
	for a.number = 1; ; {
		last, turn, err := a.lastTurn(ctx)
		if err == nil && turn.Epoch > a.epoch {
			err = ErrTakenOver
		}
		if err == nil {
			a.at = max(turn.At, a.now().MS)
			claim := record.Turn{LogVersion: a.LogVersion(), Epoch: a.epoch, Number: a.number, At: a.at}
			a.last, err = a.Log.Append(ctx, claim.Append(nil), last.Seq)
		}
		if errors.Is(err, ErrWrongTurn) && ctx.Err() == nil {
			continue // the owner before has appended meanwhile
		}
		if err != nil {
			return 0, fmt.Errorf("claim the log: %w", err)
		}
		return a.last, nil
	}
}

// appendTurn begins the next turn, and applies it when it is stored.
func (o *Owner) appendTurn() { o.appender.begin(o.turnDone) }

func (o *Owner) turnDone(all []request, seq uint64, at int64, err error) {
	switch {
	case err == nil:
		turn := &replica.Turn{Seq: seq, At: at}
		for _, r := range all {
			turn.Batches = append(turn.Batches, r.events)
		}
		o.appender.stored = turn
		o.applyTurn()
	case errors.Is(err, ErrRefused): // who asked repeats it; what the owner proposed, it proposes again later
		o.Logger.Error("the log does not accept a turn", "partition", o.Partition, "batches", len(all), "bytes", len(all[0].data), "error", err)
	case errors.Is(err, ErrTakenOver), errors.Is(err, ErrUnreadable):
		o.fatal = err
		return
	default: // the owner ends
		return
	}
	t := o.appender
	before := t.ownLeft
	for _, r := range all {
		if r.own {
			t.ownLeft--
			if err != nil {
				t.refused = append(t.refused, r.proposals...)
			}
		}
	}
	if before > 0 && t.ownLeft == 0 {
		o.step(replica.Stored{Kind: replica.JobAppend, Refused: t.refused})
		t.refused = nil
	}
}

// applyTurn gives the replica a turn that is stored; while the lease does not hold, later.
func (o *Owner) applyTurn() {
	if t := o.appender.stored; t != nil && o.taken(t) {
		o.appender.stored = nil
	}
}
