package partition

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// submit applies one message of a lane.
func (o *Owner) submit(pos ids.Position, at time.Time, entries []*entry) {
	lane, now := pos.Lane(), at.UnixMilli()
	o.lanes[lane].Read(pos.Seq(), len(entries), o.floorOf(entries))
	for _, e := range entries {
		if o.duplicate(e) {
			o.lanes[lane].Done(pos.Seq())
			o.gates[lane].leave(1)
			continue
		}
		o.lineUp(e)
		o.tasks[e.ID] = e
		fx := taskstate.Load(&e.Task, now)
		if m, marked := o.marks[e.ID]; marked {
			fx = taskstate.CancelUnseen(&e.Task, m.reason, max(now, m.at))
			m.settle(taskstate.Verdict{})
			delete(o.marks, e.ID)
		}
		o.carryOut(e, fx, source{lane: lane, seq: pos.Seq()})
		o.traceApply(e, at)
		if early, ok := o.unread[e.ID]; ok {
			delete(o.unread, e.ID)
			for i := range early {
				w := &early[i]
				w.answer.set(w.index, o.event(&w.event, w.seq, w.at, w.answer, w.index))
				o.outbox.answerIfDone(w.answer)
			}
		}
	}
	o.Metrics.SubmitBatches.Add(1)
	o.Metrics.Loaded.Add(int64(len(entries)))
}

// floorOf is the last event that concerns none of the tasks: all that has been applied,
// but for the events that came before their task did.
func (o *Owner) floorOf(entries []*entry) uint64 {
	floor := o.eventAt
	if len(o.marks)+len(o.unread) == 0 {
		return floor
	}
	for _, e := range entries {
		if m, ok := o.marks[e.ID]; ok {
			floor = min(floor, m.seq-1)
		}
		if early, ok := o.unread[e.ID]; ok {
			floor = min(floor, early[0].seq-1)
		}
	}
	return floor
}

// duplicate tells whether e is a stay that is known already: a submit repeated by a
// frontend, a task fired twice, the original of a carried task. A later stay of a
// task that is on its way into the timer store takes the earlier one's place.
func (o *Owner) duplicate(e *entry) bool {
	if known, ok := o.tasks[e.ID]; ok {
		if known.State == taskstate.Waiting && e.Parkings >= known.Parkings && e.Parkings > 0 {
			o.leave(known)
			known.gone = true
			return false
		}
		return true
	}
	end, known := o.recent.get(e.ID)
	if known && end.state == taskstate.Waiting {
		return e.Parkings < end.parkings // else it comes back from the timer store
	}
	return known && e.Parkings <= end.parkings
}

// events applies one event message and gathers its verdicts.
func (o *Owner) events(seq uint64, at time.Time, batch *record.Events) {
	o.eventAt = seq
	now := at.UnixMilli()
	var a *answer
	if batch.ReplyTo != "" {
		a = newAnswer(batch.ReplyTo, batch.RequestID, len(batch.Events))
	}
	for i := range batch.Events {
		if _, ok := batch.Carried[i]; ok {
			o.carriedRecorded(batch.Carried[i])
			a.set(i, taskstate.Verdict{})
			continue
		}
		v := o.event(&batch.Events[i], seq, now, a, i)
		if v.Code != deferred {
			a.set(i, v)
		}
	}
	o.outbox.answerIfDone(a)
	o.Metrics.EventBatches.Add(1)
	o.Metrics.Events.Add(int64(len(batch.Events)))
}

// deferred stands for a verdict that will be set later.
const deferred fault.Code = "deferred"

// event applies one event. The verdict is `deferred` where it must wait.
func (o *Owner) event(ev *taskstate.Event, seq uint64, now int64, a *answer, i int) taskstate.Verdict {
	e, ok := o.tasks[ev.ID]
	if !ok {
		return o.eventOfAbsent(waitingVerdict{*ev, seq, now, a, i})
	}
	if ev.Kind == taskstate.Cancel {
		if e.State == taskstate.Waiting && (ev.Domain == "" || ev.Domain == e.Domain) {
			e.cancels = append(e.cancels, waitingVerdict{*ev, seq, now, a, i})
			return taskstate.Verdict{Code: deferred}
		}
	} else if ev.Fence.Position != e.Position {
		return taskstate.Verdict{Code: fault.Stale, Message: "the task has been resubmitted since"}
	}
	before := e.State
	v, fx := taskstate.Apply(&e.Task, ev, now)
	if v.Code != "" {
		o.Metrics.Refused.Add(1)
		if before == taskstate.Backoff && ev.Kind == taskstate.Started {
			// Our clock runs before the log's: the trigger came too early. Look again.
			o.wake.Set(e, time.Now().UnixMilli()+max(1, e.DueAt-now))
		}
		return v
	}
	o.carryOut(e, fx, source{event: true, seq: seq})
	switch {
	case a == nil:
	case v.Granted:
		o.grant(e, a, i)
	case telemetry.Sampled(e.Trace):
		a.verdicts[i].Trace = e.Trace // whoever asks can show it in the task's trace
	}
	return v
}

// eventOfAbsent decides about an event of a task that is not in memory.
func (o *Owner) eventOfAbsent(w waitingVerdict) taskstate.Verdict {
	end, left := o.recent.get(w.event.ID)
	if left && (end.state.Finished() || w.event.Kind != taskstate.Cancel) {
		return end.verdict(&w.event)
	}
	if w.event.Kind == taskstate.Cancel {
		o.mark(w)
		return taskstate.Verdict{Code: deferred}
	}
	pos := w.event.Fence.Position
	if pos.Lane() >= ids.Lanes || pos.Seq() >= w.seq {
		return notFound() // an event lies behind its submit: this fence is forged
	}
	if pos.Seq() <= o.lanes[pos.Lane()].ReadLevel() {
		return notFound()
	}
	// Another owner has read further than we have. Keep the event, and read on.
	o.unread[w.event.ID] = append(o.unread[w.event.ID], w)
	o.gates[pos.Lane()].demand(pos.Seq())
	return taskstate.Verdict{Code: deferred}
}

// carryOut files the effects of a record. While replaying, what still matters in the end is
// sent when the replay is over; slots are released in any case, since the owner before may
// have died between the record and its word. Releasing twice is harmless.
func (o *Owner) carryOut(e *entry, fx taskstate.Effects, by source) {
	e.recount()
	if fx.Park {
		e.parkedBy = by
	}
	if fx.Finish {
		o.finished(e)
	}
	if fx.Release {
		o.outbox.release(e, fx.ReleaseVersion)
	}
	if !o.replaying {
		if fx.Trigger && e.State == taskstate.Ready {
			o.trigger(e)
		}
		if fx.Park {
			o.outbox.park(e)
		}
	}
	o.wake.Set(e, e.WakeAt())
}

// finished files an ended task for the archive and tells who waits for it.
func (o *Owner) finished(e *entry) {
	switch e.State {
	case taskstate.Completed:
		e.list.completed++
	case taskstate.Dead:
		e.list.dead++
	}
	o.outbox.archive(e)
	if !o.replaying {
		o.waiters.finished(o, e)
	}
}

// trigger tells matching that e is ready.
func (o *Owner) trigger(e *entry) {
	e.triggeredAt = time.Now().UnixMilli()
	o.outbox.trigger(e)
	o.traceTrigger(e)
	o.Metrics.Triggers.Add(1)
}

// leave takes e out of memory and lets the log forget its submit.
func (o *Owner) leave(e *entry) {
	if e.gone {
		return
	}
	o.wake.Remove(e)
	e.uncount()
	if o.tasks[e.ID] == e {
		delete(o.tasks, e.ID)
	}
	if e.carriedAsOf != 0 {
		delete(o.carried, e.ID)
		return
	}
	if e.Position.Seq() != 0 {
		o.lanes[e.Position.Lane()].Done(e.Position.Seq())
		o.gates[e.Position.Lane()].leave(1)
	}
}

// grant completes the verdict on a grab with what the worker gets.
func (o *Owner) grant(e *entry, a *answer, i int) {
	v := &a.verdicts[i]
	traceparent := ""
	if len(e.Trace) > 0 {
		traceparent = telemetry.FormatTraceparent(e.Trace)
		v.Trace = e.Trace
	}
	v.Task = o.encoder.Polled(&e.Task, traceparent)
	v.DeadlineMs = e.Attempt.DeadlineAt
	a.grants = append(a.grants, grant{e.ID, e.Token()})
	e.column.grantedReadyAt = max(e.column.grantedReadyAt, e.ReadyAt)
	o.Metrics.Granted.Add(1)
	o.traceWait(e)
}
