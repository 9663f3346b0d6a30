package replica

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// submits takes one message of a lane, or of a queue.
func (r *Replica) submits(in *Submits, now Now, fx *Effects) {
	account := r.reader(in, fx)
	if account == nil {
		return
	}
	account.Read(in.Seq, len(in.Tasks), in.Bytes, r.floorFor(in.Tasks), in.Domain)
	pos := ids.NewPosition(in.Seq, in.Lane)
	if in.Domain == "" {
		pos = pos.InShared()
	}
	for i, e := range in.Tasks {
		e.index, e.arrivedAt, e.shared = int32(i), in.At, in.Domain == ""
		e.Before, e.Position = e.Position, pos
		e.State = taskstate.None
		e.Extra = e.Extra.LiesAt(in.Seq, i)
		r.charge(e)
		r.arrive(e, now, fx)
	}
	fx.Counts.SubmitBatches++
	fx.Counts.Loaded += int64(len(in.Tasks))
}

// floorFor is the last event that concerns none of the tasks: all that has been read, but
// for what was read before its task.
func (r *Replica) floorFor(tasks []*Entry) uint64 {
	floor := r.eventAt
	if len(r.early.byID) == 0 {
		return floor
	}
	for _, e := range tasks {
		if early := r.early.of(e.ID); len(early) > 0 {
			floor = min(floor, early[0].seq-1)
		}
	}
	return floor
}

// arrive places a stay that has been read: it comes in, waits for the end of the one before, or
// is known already.
func (r *Replica) arrive(e *Entry, now Now, fx *Effects) {
	known := r.tasks[e.ID]
	switch {
	case known != nil && (e.Parkings < known.Parkings ||
		e.Parkings == known.Parkings && known.State != taskstate.Waiting ||
		known.State.Finished() && !isBack(known, e)),
		known == nil && r.past.knows(e):
		r.drop(e)
		r.letGo(e.ID, now, fx) // what waited for this copy
	case r.unread(e.Before, e.Domain):
		r.demand(e.Before, e.Domain, true)
		r.hold(e)
	case r.isHeld(e.ID, e.Before):
		r.hold(e)
	case known == nil || known.left:
		r.admit(e, now, fx)
	case known.State == taskstate.Waiting || isBack(known, e):
		// It has come back before we heard that it was stored.
		delete(r.tasks, e.ID)
		r.leave(known)
		r.admit(e, now, fx)
	case e.Before == 0 || e.Before.Same(known.Position):
		// The event that ended the stay before is not read yet.
		r.hold(e)
	default:
		// It comes after another submit of the same id, by a client that has stored several. Were it held, the log could not be
		// purged until the known one ends, which may be never.
		r.drop(e)
		r.letGo(e.ID, now, fx)
	}
}

// drop forgets a stay that is known already: a submit repeated in its lane, a task fired
// twice, the original of a carried task.
func (r *Replica) drop(e *Entry) {
	e.left = true
	r.charge(e)
	r.windowOf(e).Done(e.Position.Seq())
}

func (r *Replica) hold(e *Entry) {
	all := append(r.held[e.ID], e)
	slices.SortStableFunc(all, func(a, b *Entry) int { return int(a.Parkings) - int(b.Parkings) })
	r.held[e.ID] = all
}

// letGo lets the stays arrive again that waited for id.
func (r *Replica) letGo(id ids.TaskID, now Now, fx *Effects) {
	all, ok := r.held[id]
	if !ok {
		return
	}
	delete(r.held, id)
	for _, e := range all {
		r.arrive(e, now, fx)
	}
}

// admit takes a stay in, and then what came before it.
func (r *Replica) admit(e *Entry, now Now, fx *Effects) {
	early := r.early.take(e.ID)
	r.tasks[e.ID] = e
	e.since = r.eventAt
	for _, h := range early {
		e.lastEvent = max(e.lastEvent, h.seq)
	}
	r.enqueue(e)
	r.giveTurnTo(e, now)
	if len(e.Trace) > 0 && r.replay == nil {
		fx.Traced = append(fx.Traced, Traced{What: TraceApplied, Task: &e.Task, Since: e.arrivedAt})
	}
	did := taskstate.Load(&e.Task, e.arrivedAt)
	trigger := did.Trigger
	did.Trigger = false
	r.carryOut(e, did, 0, now, fx)
	for _, h := range early {
		r.event(h, now, fx)
	}
	if trigger && e.State == taskstate.Ready && !e.left && e.triggeredAt == 0 {
		r.trigger(e, now, fx)
	}
}

// carryOut files what follows from a record; cause is the event, 0 = the submit. While
// replaying, what still matters in the end is done when the replay is over. Slots are
// released in any case: the previous owner may have died before it reported them, and
// releasing twice is harmless.
func (r *Replica) carryOut(e *Entry, did taskstate.Effects, cause uint64, now Now, fx *Effects) {
	if did.Release != nil {
		r.release(e, &did, fx)
	}
	r.recount(e)
	r.charge(e)
	r.wake.Set(e, e.WakeAt())
	if did.Trigger && e.State == taskstate.Ready {
		r.trigger(e, now, fx)
	}
	if !did.Park && !did.Finish {
		return
	}
	e.cause = cause
	if did.Finish {
		r.ended(e, fx)
		r.stepAside(e, now, fx)
	}
	switch {
	case r.replay == nil:
		r.dispatch(e, now)
	case r.isStored(e):
		r.leave(e) // a takeover must not hold all that has ended since the floor
	}
	r.letGo(e.ID, now, fx)
}

// dispatch sends a task that is parked or has ended on its way, unless a takeover has found
// it there already.
func (r *Replica) dispatch(e *Entry, now Now) {
	stay := Stay{e.ID, e.Parkings}
	switch {
	case e.State.Finished() && r.archivedTail.take(e):
		r.leave(e)
	case e.State.Finished():
		r.archive.add(e, now.MS)
	case r.parkedTail[stay]:
		delete(r.parkedTail, stay)
		r.leave(e)
	default:
		r.park.add(e, now.MS)
	}
}

// isStored tells whether the checkpoint of a takeover says that the other store has e.
func (r *Replica) isStored(e *Entry) bool {
	store := &r.park
	if e.State.Finished() {
		store = &r.archive
	}
	return store.holds(e)
}

// recovered ends a takeover.
func (r *Replica) recovered(in Recovered, now Now, fx *Effects) {
	r.replay = nil
	r.parkedTail, r.archivedTail, r.tailEnds = in.Parked, in.Archived, in.Ends
	r.park.last, r.archive.last = max(r.park.last, in.TimerSeq), max(r.archive.last, in.ArchiveSeq)
	for i, l := range r.lanes {
		l.Skip(r.base.Read[i])
	}
	for _, c := range r.base.Queues {
		r.queues[c.Queue].window.Skip(c.Read)
	}
	r.giveTurns(now)
	for _, e := range r.inLine(func(e *Entry) bool { return e.State == taskstate.Ready }) {
		r.trigger(e, now, fx)
	}
	for _, e := range r.inLine(func(e *Entry) bool { return e.State.Finished() || e.State == taskstate.Waiting }) {
		r.dispatch(e, now)
	}
	for _, id := range r.early.ids() {
		if e := r.tasks[id]; e == nil || e.left {
			r.searchWaiting(id)
		}
	}
}
