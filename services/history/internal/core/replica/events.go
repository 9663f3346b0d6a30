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
func (r *Replica) events(in *Events, now Now, fx *Effects) {
	r.snapshots.bytes += int64(in.Bytes)
	var ans *Answer
	if in.ReplyTo != "" && r.replay == nil {
		ans = answer.New(in.ReplyTo, in.RequestID, len(in.Events))
	}
	var from *dispatch.Batch
	if in.Shard > 0 {
		from = r.Batch(in.Shard, in.Epoch, in.RequestID, in.Delivered, in.Polls, len(in.Events))
	}
	stale := from != nil && from.Superseded()
	req := new(locate.Request) // what waits is copied
	for i := range in.Events {
		ev := &in.Events[i]
		if !ev.Kind.Known() {
			fx.Halt = fmt.Errorf("event %d of message %d is of kind %d, which this version does not know", i, in.Seq, ev.Kind)
			return
		}
		*req = locate.Request{Ev: ev, Seq: in.Seq, At: in.At, Place: in.First + i, Answer: ans, I: i, From: from, Replayed: r.replay != nil}
		if ev.Kind == taskstate.Fence {
			r.fenced(req, fx)
			continue
		}
		e := r.tasks[ev.ID]
		if stale && ofOwner(ev.Kind) {
			r.superseded(req, fx)
		} else {
			r.decide(req, e, now, fx)
		}
	}
	switch {
	case ans == nil:
	case len(in.Events) == 0:
		fx.Answers = append(fx.Answers, ans)
	case !ans.Known():
		r.answers.Partly(ans)
	}
	fx.Counts.EventBatches++
	fx.Counts.Events += int64(len(in.Events))
}

// ofOwner tells whether events of a kind are void that an overtaken owner of a matching shard wrote.
func ofOwner(kind taskstate.Kind) bool {
	return kind == taskstate.Started || kind == taskstate.Released || kind == taskstate.Reject || kind == taskstate.Displace
}

// fenced decides about a fence of a matching shard.
func (r *Replica) fenced(req *locate.Request, fx *Effects) {
	switch {
	case req.From == nil:
		r.conclude(req, taskstate.Verdict{Code: fault.InvalidArgument, Message: "a fence of no shard"}, fx)
	case req.From.Superseded():
		r.superseded(req, fx)
	default:
		req.From.Fence()
		r.conclude(req, taskstate.Verdict{}, fx)
	}
}

// superseded refuses a grab, a hand-back or a fence of an owner of a matching shard that a newer one has fenced.
func (r *Replica) superseded(req *locate.Request, fx *Effects) {
	fx.Counts.Refused++
	if req.Answer != nil {
		out := req.Answer.Verdict(req.I)
		out.Fenced = true
	}
	r.conclude(req, taskstate.Verdict{Code: fault.Stale, Message: "the matching shard has a newer owner"}, fx)
}

// event decides about an event that has waited.
func (r *Replica) event(req *locate.Request, now Now, fx *Effects) {
	r.decide(req, r.tasks[req.Ev.ID], now, fx)
}

// decide decides about one event; a command may wait. e is what memory has of its task.
func (r *Replica) decide(req *locate.Request, e *Entry, now Now, fx *Effects) {
	forged := !req.Ev.Kind.Command() && (req.Ev.Fence.Position.Lane() >= ids.Lanes || req.Ev.Fence.Position.Seq() >= req.Seq) // an event lies behind its submit
	if forged {
		r.conclude(req, locate.NotFound(), fx)
		return
	}
	if req.Ev.Kind.Command() {
		r.command(req, e, now, fx)
		return
	}
	pos := req.Ev.Fence.Position
	switch {
	case e != nil && e.Position.Same(pos):
		r.apply(e, req, now, fx)
	case first(req.Ev.Kind) && r.Unread(pos, req.Ev.Domain):
		// An owner that died had sent its trigger. It is sent again with the admission, and then must not be taken for one that is out of date.
		r.conclude(req, taskstate.Verdict{Code: fault.Unavailable, Message: "the task is not admitted yet"}, fx)
	case e != nil && !locate.MissedLater(&e.Task, e.left, pos):
		r.conclude(req, taskstate.ApplyToEarlierStay(&e.Task, req.Ev), fx)
	case first(req.Ev.Kind):
		// The caller gets nothing, wherever the task is now. A search may take long, and the grants
		// of the same message would run out with it.
		r.conclude(req, taskstate.Verdict{Code: fault.Stale, Message: "the trigger is out of date"}, fx)
	default:
		r.locator.Ask(req, deciding{r, now, fx})
	}
}

// apply applies an event to the stay in memory, or to one that has left and changes no more.
func (r *Replica) apply(e *Entry, req *locate.Request, now Now, fx *Effects) {
	at := req.At
	if req.Seq < e.Position.Seq() {
		at = max(at, e.arrivedAt) // a command from before this stay counts as of its beginning
	}
	req.Locate()
	ended := req.Ev.Fence.Same(e.Token())
	before, failures, revision := e.State, e.Failures, e.Revision()
	v, did := taskstate.Apply(&e.Task, req.Ev, at)
	if ended {
		e.proposed &^= 1 << req.Ev.Kind
	}
	if v.Code != "" {
		fx.Counts.Refused++
		r.refused(e, req.Ev, before, at, now)
	} else if !e.left {
		switch {
		case e.State != taskstate.Running:
			e.proposed = 0
		case req.Ev.Kind == taskstate.Heartbeat:
			e.proposed &^= spared // its worker was heard: the next standstill is another one
		}
		if req.Ev.Kind == taskstate.Expired && r.replay == nil {
			fx.Counts.expired(&e.Task)
			if len(e.Trace) > 0 {
				fx.Traced = append(fx.Traced, Traced{What: TraceExpired, Task: &e.Task, Since: e.Attempt.StartedAt})
			}
		}
		if e.Failures > failures {
			r.CountFailure(&e.Entry)
		}
		if before != taskstate.Running && e.Revision() != revision {
			r.Replace(&e.Entry)
		}
		r.delivery(e, req, &v)
		r.carryOut(e, did, now, fx, !r.unlogged.admitting)
	}
	r.answer(e, req, v, now, fx)
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
func (r *Replica) refused(e *Entry, ev *taskstate.Event, before taskstate.State, at int64, now Now) {
	early := before == taskstate.Backoff && ev.Kind == taskstate.Started ||
		before == taskstate.Running && ev.Kind == taskstate.Expired && e.Token() == ev.Fence
	idle := !e.left && (before == taskstate.Ready || before == taskstate.Backoff)
	switch {
	case ev.Kind == taskstate.Lapse && idle && e.LapsesAt() > at && !r.wake.Has(e):
		r.wake.Set(e, now.MS+e.LapsesAt()-at)
	case early && e.WakeAt() > at:
		r.wake.Set(e, now.MS+e.WakeAt()-at)
	case early && ev.NotAfter > 0:
		e.proposed |= spared
		r.wake.Set(e, now.MS+graceMS)
	}
}

// answer gives an event its verdict, and a grab what was granted.
func (r *Replica) answer(e *Entry, req *locate.Request, v taskstate.Verdict, now Now, fx *Effects) {
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
		r.NoteStart(&e.Entry, req.From)
		fx.Counts.Granted++
		if len(e.Trace) > 0 && !v.Repeated {
			waited, ok := e.Waited()
			if !ok {
				waited = taskstate.Wait{}
			}
			fx.Traced = append(fx.Traced, Traced{What: TraceGranted, Task: &e.Task, Since: e.ReadySince(), Waited: waited})
		}
	}
	r.conclude(req, v, fx)
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
func (r *Replica) trigger(e *Entry, now Now, fx *Effects) {
	if r.replay == nil {
		r.Trigger(&e.Entry, now.MS, &fx.Effects)
	}
}

// Hungry re-sends triggers of a tasklist whose pollers have nothing to do, as Lists does. Pollers ask again, so without a lease, when
// nothing goes out, it does not gather what they ask for.
func (r *Replica) Hungry(domain, name string, present []string, now Now, fx *Effects) {
	if r.lease.holds(now.Mono) {
		r.Lists.Missing(domain, name, present, now.MS, &fx.Effects)
	}
}
