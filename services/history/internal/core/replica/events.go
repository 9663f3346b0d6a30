package replica

import (
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/answer"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
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
	h := new(held) // what waits is copied
	for i := range in.Events {
		ev := &in.Events[i]
		if !ev.Kind.Known() {
			fx.Halt = fmt.Errorf("event %d of message %d is of kind %d, which this version does not know", i, in.Seq, ev.Kind)
			return
		}
		*h = held{ev: ev, seq: in.Seq, at: in.At, place: in.First + i, ans: ans, i: i, from: from, replayed: r.replay != nil}
		if ev.Kind == taskstate.Fence {
			r.fenced(h, fx)
			continue
		}
		e := r.tasks[ev.ID]
		if stale && ofOwner(ev.Kind) {
			r.superseded(h, fx)
		} else {
			r.decide(h, e, now, fx)
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
func (r *Replica) fenced(h *held, fx *Effects) {
	switch {
	case h.from == nil:
		r.conclude(h, taskstate.Verdict{Code: fault.InvalidArgument, Message: "a fence of no shard"}, fx)
	case h.from.Superseded():
		r.superseded(h, fx)
	default:
		h.from.Fence()
		r.conclude(h, taskstate.Verdict{}, fx)
	}
}

// superseded refuses a grab, a hand-back or a fence of an owner of a matching shard that a newer one has fenced.
func (r *Replica) superseded(h *held, fx *Effects) {
	fx.Counts.Refused++
	if h.ans != nil {
		out := h.ans.Verdict(h.i)
		out.Fenced = true
	}
	r.conclude(h, taskstate.Verdict{Code: fault.Stale, Message: "the matching shard has a newer owner"}, fx)
}

// event decides about an event that has waited.
func (r *Replica) event(h *held, now Now, fx *Effects) { r.decide(h, r.tasks[h.ev.ID], now, fx) }

// decide decides about one event; a command may wait. e is what memory has of its task.
func (r *Replica) decide(h *held, e *Entry, now Now, fx *Effects) {
	forged := !h.command() && (h.ev.Fence.Position.Lane() >= ids.Lanes || h.ev.Fence.Position.Seq() >= h.seq) // an event lies behind its submit
	if forged {
		r.conclude(h, notFound(), fx)
		return
	}
	if h.command() {
		r.command(h, e, now, fx)
		return
	}
	pos := h.ev.Fence.Position
	switch {
	case e != nil && e.Position.Same(pos):
		r.apply(e, h, now, fx)
	case h.first() && r.Unread(pos, h.ev.Domain):
		// An owner that died had sent its trigger. It is sent again with the admission, and then must not be taken for one that is out of date.
		r.conclude(h, taskstate.Verdict{Code: fault.Unavailable, Message: "the task is not admitted yet"}, fx)
	case e != nil && !e.leftBefore(pos):
		r.conclude(h, taskstate.ApplyToEarlierStay(&e.Task, h.ev), fx)
	case h.first():
		// The caller gets nothing, wherever the task is now. A search may take long, and the grants
		// of the same message would run out with it.
		r.conclude(h, taskstate.Verdict{Code: fault.Stale, Message: "the trigger is out of date"}, fx)
	default:
		r.ask(h, fx)
	}
}

// wait keeps a copy: the rest of the message must not stay in memory with it.
func (r *Replica) wait(h *held) {
	kept, ev := *h, *h.ev
	kept.ev = &ev
	if h.ans != nil && !h.promised {
		h.ans.Waits(h.i)
	}
	r.early.add(&kept)
}

// leftBefore tells whether the later stay at pos has come and gone unseen: a takeover has read this
// one again, which was not known to be stored, and not that one, which was.
func (e *Entry) leftBefore(pos ids.Position) bool { return e.left && e.Position.Seq() < pos.Seq() }

// apply applies an event to the stay in memory, or to one that has left and changes no more.
func (r *Replica) apply(e *Entry, h *held, now Now, fx *Effects) {
	at := h.at
	if h.seq < e.Position.Seq() {
		at = max(at, e.arrivedAt) // a command from before this stay counts as of its beginning
	}
	h.locate()
	ended := h.ev.Fence.Same(e.Token())
	before, failures, revision := e.State, e.Failures, e.Revision()
	v, did := taskstate.Apply(&e.Task, h.ev, at)
	if ended {
		e.proposed &^= 1 << h.ev.Kind
	}
	if v.Code != "" {
		fx.Counts.Refused++
		r.refused(e, h.ev, before, at, now)
	} else if !e.left {
		switch {
		case e.State != taskstate.Running:
			e.proposed = 0
		case h.ev.Kind == taskstate.Heartbeat:
			e.proposed &^= spared // its worker was heard: the next standstill is another one
		}
		if h.ev.Kind == taskstate.Expired && r.replay == nil {
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
		r.delivery(e, h, &v)
		r.carryOut(e, did, now, fx, !r.unlogged.admitting)
	}
	r.answer(e, h, v, now, fx)
}

// delivery notes that an attempt was granted, or that it no longer needs a report.
func (r *Replica) delivery(e *Entry, h *held, v *taskstate.Verdict) {
	switch {
	case v.Granted && !v.Repeated && h.from != nil:
		r.Granted(&e.Entry, h.from, h.ev)
	case e.State != taskstate.Running || h.ev.Kind == taskstate.Heartbeat:
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
func (r *Replica) answer(e *Entry, h *held, v taskstate.Verdict, now Now, fx *Effects) {
	if h.ans == nil || h.promised {
		return
	}
	out := h.ans.Verdict(h.i)
	if v.Code == "" {
		out.Trace = []byte(e.Trace)
	}
	if v.Granted {
		out.Grant = grantOf(&e.Task)
		out.Grant.First, out.Grant.ReadyAt = !v.Repeated, e.ReadySince()
		r.NoteStart(&e.Entry, h.from)
		fx.Counts.Granted++
		if len(e.Trace) > 0 && !v.Repeated {
			waited, ok := e.Waited()
			if !ok {
				waited = taskstate.Wait{}
			}
			fx.Traced = append(fx.Traced, Traced{What: TraceGranted, Task: &e.Task, Since: e.ReadySince(), Waited: waited})
		}
	}
	r.conclude(h, v, fx)
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
