// Package turn appends events to the log of a partition.
//
// Owns: what waits for its turn, the one turn that is under way, and the last one that is stored. A turn is one
// message: the batches that services have asked for, and what the owner proposes. Events that gather while one is under
// way make the next one. Each is appended behind the last turn that this owner knows, so the log refuses it once
// another owner has claimed the partition (I3). The first turn of an epoch claims it.
// Never does: decide about events, or answer who asked; the replica does, once the turn is stored.
// On failure: what may be stored is repeated, or found in the log; a turn of another owner ends this one with ErrTakenOver.
package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// Errors that the package's errors wrap.
var (
	// ErrTakenOver: another owner has taken the partition over.
	ErrTakenOver = errors.New("another owner has taken the partition over")
	// ErrWrongTurn: the last turn of the log is not the expected one.
	ErrWrongTurn = errors.New("another turn is the last one")
	// ErrRefused: the store will never take this, however often it is repeated.
	ErrRefused = errors.New("the store does not take this")
	// ErrUnreadable: the log holds a record of a version or kind that this program does not know. It must not be skipped.
	ErrUnreadable = errors.New("the log holds what this version cannot read")
)

// Record is one stored message.
type Record struct {
	Subject string
	Seq     uint64
	Time    time.Time
	Data    []byte
	// Pending is how many messages of the same source were still to come.
	Pending uint64
}

// Log is where turns are stored.
type Log interface {
	// Append appends an encoded turn behind message after of the events, 0 = they have none; else ErrWrongTurn.
	Append(ctx context.Context, turn []byte, after uint64) (seq uint64, err error)
	// LastTurn is the last message of the events, as the leader of the stream has it; its Seq is 0 if there is none.
	LastTurn(ctx context.Context) (Record, error)
	// Listen hands over the encoded EventBatches that services send to the owner, until ctx ends.
	Listen(ctx context.Context, take func(batch []byte)) error
}

// Owner is what an appender needs of its owner. But for Persist and Post, it is called on the owner's goroutine.
type Owner interface {
	// Persist repeats a write until it is stored. It returns errors that wrap ErrRefused, ErrTakenOver or
	// ErrUnreadable, and the context's when the owner ends.
	Persist(write func(context.Context) error) error
	// Post runs do on the owner's goroutine.
	Post(do func())
	// Early tells whether events are about a task that this owner has yet to admit.
	Early(e *replica.Events) bool
	// Take gives the replica an input; false: it does not take a turn now, since its lease does not hold.
	Take(in replica.Input) bool
	// Terms are those of types that have changed, by which events of the next turn are decided.
	Terms(next []*replica.Events) []*logv1.TypeTerms
	// Admitted are the steps by which tasks came into the state since the turn before. Until the turn that has them is
	// taken, or TurnRefused, there are no more.
	Admitted() []replica.Admission
	// Fail ends the owner.
	Fail(err error)
	// NowMS is the time of the log as this node knows it, Unix ms.
	NowMS() int64
}

const (
	// bytesMax bounds a turn; a larger batch goes alone. With terms of types it fits into the least message that a server must take, 512 KiB.
	bytesMax = 448 << 10
	// requestsMax and requestBytesMax bound the batches that wait for a turn. A batch beyond them is dropped, and its
	// sender repeats it.
	requestsMax     = 4096
	requestBytesMax = 64 << 20
	// earlyMax bounds the batches that wait for a task to be admitted, earlyFor for how long each does: a reader is milliseconds behind, and the other events
	// of the batch wait, too. One that cannot wait goes with the next turn: these may make the room for which the task waits, and who asked about it repeats that.
	earlyMax = 256
	earlyFor = 100 * time.Millisecond
)

// Request is a batch of events that waits for its turn.
type Request struct {
	data   []byte
	events *replica.Events
	// proposals are what is in it; nil = the owner has not proposed it.
	proposals []replica.Proposal
	// since is when it was found to be early.
	since time.Time
}

// Appender appends turns. It belongs to the owner's goroutine, but for Listen.
type Appender struct {
	log     Log
	owner   Owner
	version func() uint32
	logger  *slog.Logger

	arrived chan Request
	// bytes is what waits in arrived.
	bytes atomic.Int64
	// terms makes the terms of types.
	terms *record.Decoder
	// own and next go with the next turn: proposals, and a batch that has arrived.
	own, next *Request
	// early are batches about tasks that are not admitted yet: a task that started with its submit may end before its owner has read that.
	early []Request

	epoch uint64
	// last is the message of the last turn, at its time, number its number in this epoch.
	last, number uint64
	at           int64
	busy         bool
	// stored is a turn that is stored and that the replica has not taken yet, since its lease does not hold.
	stored *replica.Turn
}

// New makes an appender for an owner that writes a version of the log.
func New(log Log, owner Owner, version func() uint32, logger *slog.Logger) *Appender {
	return &Appender{log: log, owner: owner, version: version, logger: logger, terms: record.NewDecoder(), arrived: make(chan Request, requestsMax)}
}

// Listen takes in the batches that services send, until ctx ends, and notes in them the signs of life of workers. A
// batch that cannot be read is dropped and reported to bad, so that the log holds none.
func (a *Appender) Listen(ctx context.Context, signs func(domain, workerID string) time.Duration, bad func(error)) error {
	dec := record.NewDecoder()
	return a.log.Listen(ctx, func(data []byte) {
		data, events, err := dec.Arrived(data, signs)
		if err == nil && slices.ContainsFunc(events.Events, func(e taskstate.Event) bool { return !e.Kind.Known() }) {
			err = errors.New("an event of an unknown kind")
		}
		if err != nil {
			bad(err)
			return
		}
		if a.bytes.Add(int64(len(data))) <= requestBytesMax {
			select {
			case a.arrived <- Request{data: data, events: events}:
				return
			default:
			}
		}
		a.bytes.Add(-int64(len(data)))
	})
}

// Arrived is the channel of batches while a turn may begin, else nil. A batch from it goes to Add.
func (a *Appender) Arrived() <-chan Request {
	if a.busy || a.stored != nil || a.next != nil {
		return nil
	}
	return a.arrived
}

// Add takes a batch from Arrived into the next turn.
func (a *Appender) Add(r Request) {
	a.bytes.Add(-int64(len(r.data)))
	a.next = &r
}

// Propose adds what the owner proposes to the next turn: no events at all ask whether the log moves. The next proposals
// come once these are stored.
func (a *Appender) Propose(all []replica.Proposal) {
	m := &logv1.EventBatch{LogVersion: a.version()}
	for i := range all {
		p := &all[i]
		m.Events = append(m.Events, &logv1.Event{
			Kind: logv1.EventKind(p.Kind), TaskId: p.ID[:], Position: uint64(p.Fence.Position), Version: p.Fence.Version,
			Nonce: p.Fence.Nonce, Domain: p.Domain, Message: p.Message, Undelivered: p.Undelivered, NotAfterMs: p.NotAfter, SilentLeaseMs: p.SilentLease,
		})
	}
	data, err := m.MarshalVT()
	if err != nil {
		panic("turn: " + err.Error()) // every field is of our making
	}
	events, err := record.NewDecoder().Events(data)
	if err != nil {
		panic("turn: " + err.Error())
	}
	a.own = &Request{data: data, events: events, proposals: all}
}

// Idle tells whether nothing waits and nothing is under way.
func (a *Appender) Idle() bool {
	return !a.busy && a.stored == nil && a.next == nil && a.own == nil && len(a.early) == 0 && len(a.arrived) == 0
}

// Last is the message of the last turn. It must stay in the log: the next one is appended behind it.
func (a *Appender) Last() uint64 { return a.last }

// gather takes what goes with one turn: the owner's own proposals first, and what has come before the tasks that it is about.
func (a *Appender) gather() (all []Request) {
	size := 0
	for ready := a.admitted(); ; {
		var r Request
		switch {
		case a.own != nil:
			r = *a.own
		case ready >= 0:
			r = a.early[ready]
		case a.next != nil && len(a.early) < earlyMax && a.owner.Early(a.next.events):
			a.next.since = time.Now()
			a.early = append(a.early, *a.next)
			a.next = nil
			continue
		case a.next != nil:
			r = *a.next
		default:
			select {
			case r = <-a.arrived:
				a.Add(r)
				continue
			default:
				return all
			}
		}
		if size += len(r.data); len(all) > 0 && size > bytesMax {
			return all
		}
		switch {
		case r.proposals != nil:
			a.own = nil
		case ready >= 0:
			a.early = slices.Delete(a.early, ready, ready+1)
			ready = a.admitted()
		default:
			a.next = nil
		}
		all = append(all, r)
	}
}

// admitted is the first of the batches that were early and no longer are, or have waited for long enough; -1 = there is none.
func (a *Appender) admitted() int {
	if len(a.early) == 0 {
		return -1
	}
	now := time.Now()
	return slices.IndexFunc(a.early, func(r Request) bool { return now.Sub(r.since) >= earlyFor || !a.owner.Early(r.events) })
}

// Begin appends the next turn, if something waits and none is under way.
func (a *Appender) Begin() {
	if a.busy || a.stored != nil {
		return
	}
	all := a.gather()
	if len(all) == 0 {
		return
	}
	a.number++
	turn := record.Turn{LogVersion: a.version(), Epoch: a.epoch, Number: a.number, At: max(a.at, a.owner.NowMS()), Admitted: a.owner.Admitted()}
	taken := &replica.Turn{Admitted: turn.Admitted}
	for _, r := range all {
		turn.Batches, taken.Batches = append(turn.Batches, r.data), append(taken.Batches, r.events)
		if slices.ContainsFunc(r.proposals, func(p replica.Proposal) bool { return p.NotAfter > 0 }) {
			turn.At = 0 // the server's time says whether they come too late
		}
	}
	for _, of := range a.owner.Terms(taken.Batches) {
		turn.Terms, taken.Terms = append(turn.Terms, of), append(taken.Terms, a.terms.Terms(of))
	}
	a.busy = true
	after := a.last
	go func() {
		seq, at, err := a.append(&turn, after)
		a.owner.Post(func() { a.done(all, taken, seq, at, err) })
	}()
}

// append repeats a turn behind message after until it is stored. It returns the time that its events count as made.
func (a *Appender) append(turn *record.Turn, after uint64) (seq uint64, at int64, err error) {
	data := turn.Append(nil)
	at = turn.At
	err = a.owner.Persist(func(ctx context.Context) (err error) {
		if seq, err = a.log.Append(ctx, data, after); err == nil && at > 0 || err != nil && !errors.Is(err, ErrWrongTurn) {
			return err
		}
		// The message there says whether it was stored, and when.
		last, there, err := a.lastTurn(ctx)
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

// lastTurn is the last turn in the log; its sequence is 0 if there is none. An unreadable message is no turn of this owner.
func (a *Appender) lastTurn(ctx context.Context) (Record, record.Turn, error) {
	last, err := a.log.LastTurn(ctx)
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

// done takes in that a turn is stored, or never will be.
func (a *Appender) done(all []Request, turn *replica.Turn, seq uint64, at int64, err error) {
	a.busy = false
	switch {
	case err == nil:
		a.last, a.at = seq, max(a.at, at)
		turn.Seq, turn.At = seq, at // as who takes over reads it, also where our clock is ahead of the server's
		a.stored = turn
		a.Apply()
	case errors.Is(err, ErrRefused): // who asked repeats it; what the owner proposed, it proposes again later
		a.owner.Take(replica.TurnRefused{Admitted: turn.Admitted})
		a.logger.Error("the log does not accept a turn", "events", len(all[0].events.Events), "bytes", len(all[0].data), "error", err)
	case errors.Is(err, ErrTakenOver), errors.Is(err, ErrUnreadable):
		a.owner.Fail(err)
		return
	default: // the owner ends
		return
	}
	for _, r := range all {
		switch {
		case r.proposals == nil:
		case err != nil:
			a.owner.Take(replica.Stored{Kind: replica.JobAppend, Refused: r.proposals})
		default:
			a.owner.Take(replica.Stored{Kind: replica.JobAppend})
		}
	}
}

// Apply gives the replica a turn that is stored. If its lease does not hold, the owner calls again once it does.
func (a *Appender) Apply() {
	if a.stored != nil && a.owner.Take(a.stored) {
		a.stored = nil
	}
}

// Claim appends the first turn of an epoch behind all others: no other owner appends any more, and what lies before it
// is all that was decided. It returns its sequence. If its outcome is not known, the caller claims a new epoch.
func (a *Appender) Claim(ctx context.Context, epoch uint64) (uint64, error) {
	for a.epoch, a.number = epoch, 1; ; {
		last, turn, err := a.lastTurn(ctx)
		if err == nil && turn.Epoch > epoch {
			err = ErrTakenOver
		}
		if err == nil {
			a.at = max(turn.At, a.owner.NowMS())
			claim := record.Turn{LogVersion: a.version(), Epoch: epoch, Number: a.number, At: a.at}
			a.last, err = a.log.Append(ctx, claim.Append(nil), last.Seq)
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
