package replica

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// submits takes one message of a lane, or of a queue.
func (r *Replica) submits(in *Submits, now Now, fx *Effects) {
	if at := (Queue{Lane: in.Lane, Domain: in.Domain}); !r.Admit(at, in.Queue, in.Seq) {
		if !in.Queue {
			fx.Counts.PassedOver++
		}
		return
	}
	r.snapshots.bytes += int64(in.Bytes)
	pos := ids.NewPosition(in.Seq, in.Lane)
	if in.Domain == "" {
		pos = pos.InShared()
	}
	for i, e := range in.Tasks {
		e.Index, e.arrivedAt, e.shared = int32(i), in.At, in.Domain == ""
		e.Before, e.Position = e.Position, pos
		e.State = taskstate.None
		e.Extra = e.Extra.LiesAt(in.Seq, i)
		r.live++
		r.charge(e)
		r.arrive(e, now, fx)
	}
	fx.Counts.SubmitBatches++
	fx.Counts.Loaded += int64(len(in.Tasks))
}

// arrive places a stay that has been read: it comes in, or is known already.
func (r *Replica) arrive(e *Entry, now Now, fx *Effects) {
	known := r.tasks[e.ID]
	switch {
	case known != nil && (e.Parkings < known.Parkings ||
		e.Parkings == known.Parkings && known.State != taskstate.Waiting ||
		known.State.Finished() && !isBack(known, e)),
		known == nil && r.past.knows(e):
		r.drop(e)
	case known == nil || known.left:
		r.admit(e, now, fx)
	case known.State == taskstate.Waiting || isBack(known, e):
		// It has come back before we heard that it was stored.
		delete(r.tasks, e.ID)
		r.leave(known)
		r.admit(e, now, fx)
	default: // it comes after another submit of the same id, by a client that has stored several
		r.drop(e)
	}
}

// drop forgets a stay that is known already: a submit repeated in its lane, a task fired twice.
func (r *Replica) drop(e *Entry) {
	e.left = true
	r.live--
	r.charge(e)
}

// admit takes a stay in, and then what came before it.
func (r *Replica) admit(e *Entry, now Now, fx *Effects) {
	early := r.locator.Take(e.ID)
	r.tasks[e.ID] = e
	r.enqueue(e)
	if len(e.Trace) > 0 && r.replay == nil {
		fx.Traced = append(fx.Traced, Traced{What: TraceApplied, Task: &e.Task, Since: e.arrivedAt})
	}
	r.Members.Admit(&e.Task)
	did := taskstate.Load(&e.Task, e.arrivedAt)
	r.enterLine(e)
	if e.Seat.First() {
		r.giveTurn(e.Seat, now)
	}
	trigger, park := did.Trigger, did.Park
	did.Trigger, did.Park = false, false
	r.carryOut(e, did, now, fx, false)
	r.unlogged.admitting = true // what they do to it is in the log with its admission
	for _, req := range early {
		r.event(req, now, fx)
	}
	r.unlogged.admitting = false
	if park && e.State == taskstate.Waiting && !e.left {
		r.carryOut(e, taskstate.Effects{Park: true}, now, fx, false)
	}
	if trigger && e.State == taskstate.Ready && !e.left && !e.Triggered() {
		r.trigger(e, now, fx)
	}
}

// carryOut files what follows from a record; logged: that is in the log. While
// replaying, what still matters in the end is done when the replay is over. Slots are
// released in any case: the previous owner may have died before it reported them, and
// releasing twice is harmless.
func (r *Replica) carryOut(e *Entry, did taskstate.Effects, now Now, fx *Effects, logged bool) {
	if did.Release != nil {
		r.Release(&e.Entry, &did, &fx.Effects)
	}
	r.Recount(&e.Entry)
	r.charge(e)
	r.wake.Set(e, e.WakeAt())
	if did.Trigger && e.State == taskstate.Ready {
		r.trigger(e, now, fx)
	}
	if !did.Park && !did.Finish {
		return
	}
	if did.Finish {
		r.CountEnd(&e.Entry)
		r.Members.End(&e.Task)
		if r.replay == nil {
			fx.Ended = append(fx.Ended, e)
		}
	}
	r.stepAside(e, now, fx)
	switch {
	case r.leaveIfStored(e), r.replay != nil, e.unlogged:
	case logged:
		r.dispatch(e, now)
	default:
		e.unlogged = true
		r.unlogged.entries = append(r.unlogged.entries, e)
	}
}

// dispatch sends a task that is parked or has ended on its way.
func (r *Replica) dispatch(e *Entry, now Now) {
	if e.State.Finished() {
		r.archive.add(e, now.MS)
	} else {
		r.park.add(e, now.MS)
	}
}

// recovered ends a takeover.
func (r *Replica) recovered(now Now, fx *Effects) {
	r.Replayed()
	r.replay = nil
	r.snapshots.at = now.MS
	r.spendParked(fx)
	r.lines.Firsts(func(first *line.Seat) { r.giveTurn(first, now) })
	for _, e := range r.inLine(func(e *Entry) bool { return e.State == taskstate.Ready }) {
		r.trigger(e, now, fx)
	}
	for _, e := range r.inLine(func(e *Entry) bool { return e.State.Finished() || e.State == taskstate.Waiting }) {
		r.dispatch(e, now)
	}
	r.locator.Resume(r)
}

// enqueue files e under its tasklist.
func (r *Replica) enqueue(e *Entry) {
	e.Entry.Task = &e.Task
	r.Enqueue(&e.Entry)
}

// inLine lists the tasks in memory that match, in the order in which they became ready.
func (r *Replica) inLine(match func(*Entry) bool) []*Entry {
	var line []*Entry
	for _, e := range r.tasks {
		if !e.left && match(e) {
			line = append(line, e)
		}
	}
	slices.SortFunc(line, func(a, b *Entry) int { return dispatch.Compare(&a.Entry, &b.Entry) })
	return line
}
