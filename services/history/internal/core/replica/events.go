package replica

import (
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/answer"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/locate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// events takes one batch of a turn.
func (s step) events(in *Events) {
	s.snapshots.bytes += int64(in.Bytes)
	var ans *Answer
	if in.ReplyTo != "" && s.replay == nil {
		ans = answer.New(in.ReplyTo, in.RequestID, len(in.Events))
	}
	var from *dispatch.Batch
	if in.Shard > 0 {
		from = s.Batch(in.Shard, in.Epoch, in.RequestID, in.Delivered, in.Polls, len(in.Events))
	}
	stale := from != nil && from.Superseded()
	req := new(locate.Request) // what waits is copied
	for i := range in.Events {
		ev := &in.Events[i]
		if !ev.Kind.Known() {
			s.fx.Halt = fmt.Errorf("event %d of message %d is of kind %d, which this version does not know", i, in.Seq, ev.Kind)
			return
		}
		*req = locate.Request{Ev: ev, Seq: in.Seq, At: in.At, Place: in.First + i, Answer: ans, I: i, From: from, Replayed: s.replay != nil}
		if ev.Kind == taskstate.Fence {
			s.fenced(req)
			continue
		}
		e := s.tasks[ev.ID]
		if e != nil && len(in.terms) > 0 {
			req.Terms = in.terms[typeOf(e)]
		}
		if stale && ofOwner(ev.Kind) {
			s.superseded(req)
		} else {
			s.decide(req, e)
		}
	}
	switch {
	case ans == nil:
	case len(in.Events) == 0:
		s.fx.Answers = append(s.fx.Answers, ans)
	case !ans.Known():
		s.answers.Partly(ans)
	}
	s.fx.Counts.EventBatches++
	s.fx.Counts.Events += int64(len(in.Events))
}

// ofOwner tells whether events of a kind are void that an overtaken owner of a matching shard wrote.
func ofOwner(kind taskstate.Kind) bool {
	return kind == taskstate.Started || kind == taskstate.Released || kind == taskstate.Reject || kind == taskstate.Displace
}

// fenced decides about a fence of a matching shard.
func (s step) fenced(req *locate.Request) {
	switch {
	case req.From == nil:
		s.Conclude(req, taskstate.Verdict{Code: fault.InvalidArgument, Message: "a fence of no shard"})
	case req.From.Superseded():
		s.superseded(req)
	default:
		req.From.Fence()
		s.Conclude(req, taskstate.Verdict{})
	}
}

// superseded refuses a grab, a hand-back or a fence of an owner of a matching shard that a newer one has fenced.
func (s step) superseded(req *locate.Request) {
	s.fx.Counts.Refused++
	if req.Answer != nil {
		out := req.Answer.Verdict(req.I)
		out.Fenced = true
	}
	s.Conclude(req, taskstate.Verdict{Code: fault.Stale, Message: "the matching shard has a newer owner"})
}

// decide decides about one event; a command may wait. e is what memory has of its task.
func (s step) decide(req *locate.Request, e *Entry) {
	forged := !req.Ev.Kind.Command() && (req.Ev.Fence.Position.Lane() >= ids.Lanes || req.Ev.Fence.Position.Seq() >= req.Seq) // an event lies behind its submit
	if forged {
		s.Conclude(req, locate.NotFound())
		return
	}
	if req.Ev.Kind.Command() {
		s.command(req, e)
		return
	}
	pos := req.Ev.Fence.Position
	switch {
	case e != nil && e.Position.Same(pos):
		s.apply(e, req)
	case first(req.Ev.Kind) && s.Unread(pos, req.Ev.Domain, ""):
		// An owner that died had sent its trigger. It is sent again with the admission, and then must not be taken for one that is out of date.
		s.Conclude(req, notAdmitted)
	case e == nil && req.Ev.Kind.OfAttempt() && pos.Shared() && s.Unread(pos, req.Ev.Domain, ""):
		// An attempt that began with the submit, which shares its message. Of others it may seem that they are unread, if tasklists of the domain are split off.
		s.Conclude(req, notAdmitted)
	case e != nil && !locate.MissedLater(&e.Task, e.left, pos):
		s.Conclude(req, taskstate.ApplyToEarlierStay(&e.Task, req.Ev))
	case first(req.Ev.Kind):
		// The caller gets nothing, wherever the task is now. A search may take long, and the grants
		// of the same message would run out with it.
		s.Conclude(req, taskstate.Verdict{Code: fault.Stale, Message: "the trigger is out of date"})
	default:
		s.locator.Ask(req, s)
	}
}

// notAdmitted is the verdict about an attempt of a task that lies unread. Its asker repeats it.
var notAdmitted = taskstate.Verdict{Code: fault.Unavailable, Message: "the task is not admitted yet"}

// apply applies an event to the stay in memory, or to one that has left and changes no more.
func (s step) apply(e *Entry, req *locate.Request) {
	at := req.At
	if req.Seq < e.Position.Seq() {
		at = max(at, e.arrivedAt) // a command from before this stay counts as of its beginning
	}
	req.Locate()
	ended := req.Ev.Fence.Same(e.Token())
	before, failures, revision, tasklist := e.State, e.Failures, e.Revision(), e.Tasklist
	grab := req.Ev.Kind == taskstate.Started && req.From != nil
	req.Ev.TooMuch = grab && !req.From.Fits(req.Ev, taskstate.PolledBytes(&e.Task))
	v, did := taskstate.ApplyUnder(req.Terms, &e.Task, req.Ev, at)
	if grab && v.Granted {
		req.From.Took(req.Ev, taskstate.PolledBytes(&e.Task))
	}
	if ended {
		e.proposed &^= 1 << req.Ev.Kind
	}
	if v.Code != "" {
		s.fx.Counts.Refused++
		s.refused(e, req.Ev, before, at)
	} else if !e.left {
		switch {
		case e.State != taskstate.Running:
			e.proposed = 0
		case req.Ev.Kind == taskstate.Heartbeat:
			e.proposed &^= spared // its worker was heard: the next standstill is another one
		}
		if req.Ev.Kind == taskstate.Expired && s.replay == nil {
			s.fx.Counts.expired(&e.Task)
			s.fx.Traced = append(s.fx.Traced, Traced{What: TraceExpired, Task: &e.Task, Since: e.Attempt.StartedAt})
		}
		if e.Failures > failures {
			if req.Ev.Kind == taskstate.Failed && s.replay == nil {
				s.fx.Traced = append(s.fx.Traced, Traced{What: TraceFailed, Task: &e.Task, Since: e.Attempt.StartedAt})
			}
			s.CountFailure(&e.Entry)
		}
		if before != taskstate.Running && e.Revision() != revision {
			s.discharge(e, tasklist)
			s.Replace(&e.Entry)
		}
		s.delivery(e, req, &v)
		s.carryOut(e, did, !s.unlogged.admitting)
	}
	s.answer(e, req, v)
}

// delivery notes that an attempt was granted, or that it no longer needs a report.
func (r *Replica) delivery(e *Entry, req *locate.Request, v *taskstate.Verdict) {
	switch {
	case v.Granted && !v.Repeated && req.From != nil:
		r.Granted(&e.Entry, req.From, req.Ev)
	case e.State != taskstate.Running || req.Ev.Kind == taskstate.Heartbeat:
		e.Received()
	}
}

// refused looks again at a task whose lease, wait or time was not over by the log's clock, which is
// behind ours: after what is left of it. One that the log took too late waits until its worker has
// had time to be heard.
func (s step) refused(e *Entry, ev *taskstate.Event, before taskstate.State, at int64) {
	tooSoon := before == taskstate.Backoff && ev.Kind == taskstate.Started ||
		before == taskstate.Running && ev.Kind == taskstate.Expired && e.Token() == ev.Fence
	idle := !e.left && (before == taskstate.Ready || before == taskstate.Backoff)
	switch {
	case ev.Kind == taskstate.Lapse && idle && e.LapsesAt() > at && !s.wake.Has(e):
		s.wake.Set(e, s.now.MS+e.LapsesAt()-at)
	case tooSoon && e.WakeAt() > at:
		s.wake.Set(e, s.now.MS+e.WakeAt()-at)
	case tooSoon && ev.NotAfter > 0:
		e.proposed |= spared
		s.wake.Set(e, s.now.MS+graceMS)
	}
}

// answer gives an event its verdict, and a grab what was granted.
func (s step) answer(e *Entry, req *locate.Request, v taskstate.Verdict) {
	if req.Answer == nil || req.Promised {
		return
	}
	out := req.Answer.Verdict(req.I)
	if v.Code == "" {
		out.Trace = []byte(e.Trace)
	}
	if v.Granted {
		out.Grant = grantOf(&e.Task)
		out.Grant.First, out.Grant.ReadyAt = !v.Repeated, e.ReadySince()
		s.NoteStart(&e.Entry, req.From)
		s.fx.Counts.Granted++
		if len(e.Trace) > 0 && !v.Repeated {
			waited, ok := e.Waited()
			if !ok {
				waited = taskstate.Wait{}
			}
			s.fx.Traced = append(s.fx.Traced, Traced{What: TraceGranted, Task: &e.Task, Since: e.ReadySince(), Waited: waited})
		}
	}
	s.Conclude(req, v)
}

// grantOf is the running attempt of a task as its worker gets it.
func grantOf(t *taskstate.Task) Grant {
	return Grant{Task: t, Token: t.Token(), DeadlineAt: t.Attempt.DeadlineAt}
}

// Undelivered is a grant that may not have reached its poll.
type Undelivered struct {
	Poll  dispatch.Poll
	Grant Grant
}

// Undelivered hands out what the owners before epoch of a matching shard (by number) were granted and may not have delivered, as Lists
// does, but for what is on its way to be taken back.
func (r *Replica) Undelivered(number int, epoch uint64, after ids.TaskID, take func(*Undelivered) bool) {
	const over = 1<<taskstate.Released | 1<<taskstate.Expired
	ends := func(t *taskstate.Task) bool { return r.tasks[t.ID].proposed&over != 0 }
	r.Lists.Undelivered(number, epoch, after, ends, func(p *dispatch.Poll, t *taskstate.Task) bool {
		return take(&Undelivered{*p, grantOf(t)})
	})
}

// trigger tells matching that e is ready, unless its order key holds it up, or a takeover goes on.
func (s step) trigger(e *Entry) {
	if s.replay == nil {
		s.Trigger(&e.Entry, s.now.MS, &s.fx.Effects)
	}
}

// Hungry re-sends triggers of a tasklist whose pollers have nothing to do, as Lists does. Pollers ask again, so without a lease, when
// nothing goes out, it does not gather what they ask for.
func (r *Replica) Hungry(domain, name string, present []string, now Now, fx *Effects) {
	if r.lease.holds(now.Mono) {
		r.Lists.Missing(domain, name, present, now.MS, &fx.Effects)
	}
}
