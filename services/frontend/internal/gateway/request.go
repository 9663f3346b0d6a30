package gateway

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

// A request with an id is stored once, however often and through whichever frontends it is sent (decision 0023). Its
// tasks have the same ids each time, but for the partition. Two kinds of tries put them into the log:
//
//   - The first try of a client that counts goes with the group commit, to any partition. It is void if the log takes
//     it later than aliveFor after the request's time, and nothing else makes sure that no copy comes later.
//   - Every other try goes alone, to the home partition, in a message whose id is the request's: the log refuses a
//     second one for topology.DedupeWindow.
//
// A try that may not be the first looks for the tasks before. A task that it does not find once all first tries are void
// was not stored by one of those, nor ever will be. Past appendUntil it only looks. So it does where the
// tasklist or a type is drained meanwhile.
const (
	// freshFor is the age up to which a first try goes with the group commit, and an uncounted one does not look
	// for another first.
	freshFor = 3 * time.Second
	// sendUntil is the age up to which a first try is sent to the log, aliveFor up to which the log may take it.
	sendUntil, aliveFor = 4 * time.Second, 6 * time.Second
	// tryAliveFor is how long after it has looked the log may take any other try, lastAlive the age up to which it
	// may take one at all. The log knows the message's id for longer.
	tryAliveFor, lastAlive = 20 * time.Second, topology.SubmitLatest
	// appendUntil is the age up to which a try is sent to the log.
	appendUntil = time.Minute
	// repeatMax is the age up to which a request is answered at all. Domains keep finished tasks for longer.
	repeatMax = 10 * time.Minute
	// aheadMax is how far the client's clock may be ahead: ids date their tasks.
	aheadMax = 2 * time.Second
	// clocksApart is how much the log's clock and ours may differ, and those of the servers that lead the log in turn.
	clocksApart = 1500 * time.Millisecond
	// skewReported is the age, or the time ahead, from which the answer to a first try tells the server's clock.
	skewReported = time.Second
	// askedAtOnce bounds the partitions in which a request is looked for at once.
	askedAtOnce = 16
)

// messageID is what the log recognises a repeated message by.
type messageID [16]byte

// String is the id as it travels.
func (m messageID) String() string { return hex.EncodeToString(m[:]) }

// named takes the request's id into s, if it has one.
func (s *submission) named(g *Gateway, req *yardv1.SubmitRequest) error {
	switch {
	case req.Tries < 0:
		return fault.At(fault.InvalidArgument, "/tries", "is negative")
	case req.RequestId == "" && req.Tries != 0:
		return fault.At(fault.InvalidArgument, "/tries", "counts the tries of a request_id, and there is none")
	case req.RequestId == "":
		return nil
	}
	id, err := ids.ParseRequestID(req.RequestId)
	if err != nil {
		return fault.At(fault.InvalidArgument, "/request_id", "%v", err)
	}
	age := s.call.Now.Sub(id.Time())
	if refused := s.badTime(age, req.Tries); refused != nil {
		return refused
	}
	// The number of tasks is part of it, so that no other number is answered for. Only this cluster can make the
	// seed: a client that could make one up could submit a task under the id of another domain's.
	seal := g.Tokens.Seal(s.call.Domain, append([]byte("request\x00"+strconv.Itoa(len(req.Tasks))+"\x00"), id[:]...))
	s.message, s.home = messageID(seal), int(binary.BigEndian.Uint64(seal[8:])%uint64(g.Partitioning.History))
	s.at, s.seed, s.tries, s.hasID = id.Time(), binary.BigEndian.Uint64(seal[:]), req.Tries, true
	s.alone = req.Tries != 1 || age > freshFor
	if !s.alone {
		s.within = aliveFor
	}
	return nil
}

// badTime is the refusal of a request for its age, or nil. It tells a repeat the server's clock only where no other
// server can have taken an earlier try.
func (s *submission) badTime(age time.Duration, tries int32) error {
	var refused *fault.Error
	certain := tries <= 1
	switch {
	case age < -aheadMax:
		refused = fault.At(fault.InvalidTime, "/request_id", "its time is %v ahead of the server's clock", -age.Truncate(time.Millisecond))
		certain = certain || age < -aheadMax-clocksApart
	case age > repeatMax:
		refused = fault.At(fault.FailedPrecondition, "/request_id", "was made %v ago, and is known for %v", age.Truncate(time.Second), repeatMax)
	case age > appendUntil && tries == 1:
		// There is no other try, so the client's clock is behind. A new id by the same clock would end here too. Nothing is
		// asked first: a late answer is the one that would leave the client in doubt.
		refused = fault.At(fault.FailedPrecondition, "/request_id", "its time is %v behind the server's clock, and a first try may be up to %v", age.Truncate(time.Millisecond), appendUntil)
	default:
		return nil
	}
	if certain {
		refused = s.otherClock(refused)
	}
	return refused
}

// repeats tells whether an earlier try may have been stored.
func (s *submission) repeats() bool { return s.hasID && s.tries != 1 }

// otherClock adds the server's clock to a refusal, which says too that no try was stored, nor will be.
func (s *submission) otherClock(e *fault.Error) *fault.Error {
	e.Detail = map[string]string{fault.DetailNowMs: strconv.FormatInt(s.call.now().UnixMilli(), 10)}
	return e
}

// tooOld refuses a request of which no try was stored, nor will be.
func (s *submission) tooOld(age time.Duration) error {
	return s.otherClock(fault.At(fault.FailedPrecondition, "/request_id", "its time is %v ago: no try was stored, and after %v none is any more: submit the tasks with a new id", age.Truncate(time.Second), appendUntil))
}

// age is how long ago the request was made, by the server's clock now.
func (s *submission) age() time.Duration { return s.call.now().Sub(s.at) }

// nowMs is the server's clock for a client whose own is off, Unix ms, or 0.
func (s *submission) nowMs() int64 {
	if s.hasID && s.tries <= 1 && s.call.Now.Sub(s.at).Abs() > skewReported {
		return s.call.now().UnixMilli()
	}
	return 0
}

// inTime tells whether what the log has acknowledged by now was certainly taken in time.
func (s *submission) inTime() bool { return s.within == 0 || s.age() < s.within-clocksApart }

// errNotYet: the first try may still be on its way.
var errNotYet = errors.New("a try may be under way")

// once returns what stores s unless it is stored. Its error refuses s; on success s has been answered.
func (s *submission) once(g *Gateway) work {
	return func(ctx context.Context) (codec.Message, error) {
		began := time.Now()
		for delay := backoff.New(resolveFirst, resolveLast); ; {
			wait, messages, err := g.tryOnce(ctx, s)
			if err == nil {
				if messages == 0 && s.certain { // another request has stored it
					s.charge.Return(s.tasks())
				}
				g.storedAll([]*submission{s}, messages, began, time.Now())
				return nil, nil
			}
			switch code := fault.CodeOf(err); {
			case code == fault.Internal && errors.As(err, new(*fault.Error)), code == fault.FailedPrecondition, s.refusal != nil && errors.Is(err, s.refusal):
				return nil, err
			case errors.As(err, new(*queueFullError)):
				g.metrics.submitsRefused.full(err)
				return nil, err
			case errors.Is(err, natslog.ErrFull):
				if s.certain {
					g.refuseStorageFull(s)
					return nil, nil
				}
			}
			if errors.Is(err, natslog.ErrWrongLast) {
				backoff.Sleep(ctx, inTransit())
			} else {
				backoff.Sleep(ctx, max(wait, delay.Next()))
			}
			if ctx.Err() != nil {
				g.unknown(s)
				return nil, nil
			}
		}
	}
}

// tryOnce tries once, and tells how many messages it has stored. An error leaves the outcome as unknown as it was, but
// for a defect and FAILED_PRECONDITION: nothing was stored, nor will be. Wait is how long to wait before the next try.
func (g *Gateway) tryOnce(ctx context.Context, s *submission) (wait time.Duration, messages int, err error) {
	age := s.age()
	looks := s.tries > 0 || age > freshFor || s.refusal != nil
	if looks {
		found, err := g.find(ctx, s)
		switch {
		case err != nil || found:
			return 0, 0, err
		case s.tries > 0 && age < aliveFor+clocksApart:
			return aliveFor + clocksApart - age, 0, errNotYet
		case age > lastAlive+clocksApart:
			// The client's clock may be behind, and the answer to its first try lost.
			return 0, 0, s.tooOld(age)
		case age > appendUntil:
			return lastAlive + clocksApart - age + time.Millisecond, 0, errNotYet
		case s.refusal != nil:
			return 0, 0, s.refusal
		}
	}
	if full := g.admit(s); full != nil && s.certain {
		if looks {
			return 0, 0, full
		}
		found, err := g.find(ctx, s) // it may be the repeat of one that is stored
		if err == nil && found {
			return 0, 0, nil
		}
		return 0, 0, cmp.Or(err, full)
	}
	s.place(s.home)
	s.within = min(age+tryAliveFor, lastAlive)
	s.date()
	data, err := merged([]*submission{s}, g.LogVersion()).MarshalVT()
	if err != nil {
		return 0, 0, fault.New(fault.Internal, "encode a batch: %v", err)
	}
	msg := s.member(natslog.Msg{Subject: subject(s.home, s.destination()), MsgID: s.message.String(), Data: data})
	seq, duplicate, err := g.appender.append(s.home, msg)
	if errors.Is(err, natslog.ErrWrongLast) {
		if refused, err := s.refusedBy(ctx, g.History); err == nil && refused != nil {
			s.refusal, s.closed = refused, true // unless it is found: no try is stored any more
		}
		return 0, 0, err
	}
	if err != nil {
		s.certain = s.certain && errors.Is(err, natslog.ErrNotStored)
		return 0, 0, err
	}
	s.held.lane, s.held.seq = s.destination().Lane, seq
	if !duplicate {
		if messages = 1; s.inTime() {
			return 0, messages, nil
		}
	}
	stored, err := g.holds(ctx, s, seq)
	if err == nil && !stored {
		err = errNotYet // void, and its id is taken for a while
	}
	return 0, messages, err
}

// holds tells whether message seq of its partition holds s, and was taken in time. One that the log has forgotten
// was read, and the owners know.
func (g *Gateway) holds(ctx context.Context, s *submission, seq uint64) (bool, error) {
	m, err := g.History.Message(ctx, s.partition, seq)
	if err != nil {
		return false, err
	}
	id := s.id(0)
	if m == nil {
		task, err := g.lookUp(ctx, s.call.Domain, id, time.Time{})
		return task != nil, err
	}
	var b logv1.Batch
	if err := b.UnmarshalVT(m.Data); err != nil {
		return false, nil // another's, and not readable: the owner sees to it
	}
	for _, r := range b.Tasks {
		if string(r.Id) == string(id[:]) {
			return r.WithinMs == 0 || m.Time.UnixMilli() <= id.Time().UnixMilli()+r.WithinMs, nil
		}
	}
	return false, nil
}

// find asks the owners of all partitions that s may be in for its first task: it is stored whole, and placed there. Without an error what
// is not found was not in the log when find began.
func (g *Gateway) find(ctx context.Context, s *submission) (found bool, err error) {
	n := g.Partitioning.History
	if s.pinned {
		n = 1
	}
	var away atomic.Pointer[error]
	var at atomic.Int64
	err = parallel.Each(ctx, n, askedAtOnce, func(ctx context.Context, i int) error {
		p := (s.home + i) % g.Partitioning.History
		task, err := g.lookUp(ctx, s.call.Domain, ids.NewTaskID(s.at, p, mix(s.seed, 0)), time.Time{})
		if task != nil {
			at.Store(int64(p))
			return errFound
		}
		if err != nil { // another one may have it
			away.Store(&err)
		}
		return nil
	})
	if found = err != nil; found {
		s.place(int(at.Load()))
	} else if e := away.Load(); e != nil {
		return false, *e
	}
	return found, nil
}

// errFound ends a search.
var errFound = errors.New("it is found")

// endTries waits until each try of a part that the log has not taken is void, and looks for the tasks once more.
func (pt *part) endTries(ctx context.Context, g *Gateway) error {
	backoff.Sleep(ctx, lastAlive+clocksApart+time.Millisecond-pt.age())
	if err := g.decideStored(ctx, []*part{pt}); err != nil || pt.tasks() == 0 {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	pt.fenced, pt.certain = true, true
	return pt.tooOld(pt.age())
}

// replaces tells whether a try may have changed the task that has a key.
func (pt *part) replaces() bool {
	return slices.ContainsFunc(pt.open, func(one openTask) bool { return pt.of.conflicts[one.where] == yardv1.OnConflict_ON_CONFLICT_REPLACE })
}

// late says why a part must not be sent any more, or nothing. It dates what is sent.
func (pt *part) late() string {
	age := pt.age()
	switch {
	case pt.hasID && pt.tries == 1:
		if age > sendUntil {
			return "the first try of a request is not sent for longer"
		}
		pt.within = aliveFor
	default:
		if age > appendUntil {
			return "the request is too old"
		}
		pt.within = min(age+tryAliveFor, lastAlive)
	}
	pt.date()
	return ""
}
