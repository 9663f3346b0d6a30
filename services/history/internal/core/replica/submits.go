package replica

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// submits takes one message of a lane, or of a queue.
func (s step) submits(in *Submits) {
	if !s.Admit(Queue{Lane: in.Lane, Place: in.Place}, in.By, in.Seq) {
		if in.By == "" {
			s.fx.Counts.PassedOver++
		}
		return
	}
	s.snapshots.bytes += int64(in.Bytes)
	pos := ids.NewPosition(in.Seq, in.Lane)
	switch {
	case in.Place == "":
		pos = pos.InShared()
	case in.Place.Tasklist() == "":
		pos = pos.InMixed()
	}
	for i, e := range in.Tasks {
		e.Index, e.arrivedAt, e.shared = int32(i), in.At, in.Place == ""
		e.Before, e.Position = e.Position, pos
		e.State = taskstate.None
		e.Extra = e.Extra.LiesAt(in.Seq, i)
		s.live++
		s.charge(e)
		s.arrive(e)
	}
	s.fx.Counts.SubmitBatches++
	s.fx.Counts.Loaded += int64(len(in.Tasks))
	s.meter(in)
}

// meter takes the tasks of a message off the budgets of their domains. The owner before has done that for those of a takeover.
func (s step) meter(in *Submits) {
	for all := in.Tasks; len(all) > 0 && s.replay == nil; {
		domain, n := all[0].Domain, 1
		for n < len(all) && all[n].Domain == domain {
			n++
		}
		all = all[n:]
		if over := s.Meter(Queue{Lane: in.Lane, Place: in.By}, domain, n); over > 0 {
			s.fx.OverRate = append(s.fx.OverRate, OverRate{domain, over})
		}
	}
}

// arrive places a stay that has been read: it comes in, or is known already.
func (s step) arrive(e *Entry) {
	known := s.tasks[e.ID]
	switch {
	case known != nil && (e.Parkings < known.Parkings ||
		e.Parkings == known.Parkings && known.State != taskstate.Waiting ||
		known.State.Finished() && !isBack(known, e)),
		known == nil && s.past.knows(e):
		s.drop(e)
	case known == nil || known.left:
		s.admit(e)
	case known.State == taskstate.Waiting || isBack(known, e):
		// It has come back before we heard that it was stored.
		delete(s.tasks, e.ID)
		s.leave(known)
		s.admit(e)
	default: // it comes after another submit of the same id, by a client that has stored several
		s.drop(e)
	}
}

// drop forgets a stay that is known already: a submit repeated in its lane, a task fired twice.
func (r *Replica) drop(e *Entry) {
	e.left = true
	r.live--
	r.charge(e)
}

// admit takes a stay in, and then what came before it.
func (s step) admit(e *Entry) {
	waited := s.locator.Take(e.ID)
	s.tasks[e.ID] = e
	s.enqueue(e)
	if len(e.Trace) > 0 && s.replay == nil {
		s.fx.Traced = append(s.fx.Traced, Traced{What: TraceApplied, Task: &e.Task, Since: e.arrivedAt})
	}
	s.Members.Admit(&e.Task)
	did := taskstate.Load(&e.Task, e.arrivedAt)
	if e.State == taskstate.Running {
		s.fx.Counts.Direct++
	}
	s.enterLine(e)
	if e.Seat.First() {
		s.giveTurn(e.Seat)
	}
	trigger, park := did.Trigger, did.Park
	did.Trigger, did.Park = false, false
	s.carryOut(e, did, false)
	if e.State == taskstate.Running && s.replay == nil && s.now.MS-e.arrivedAt >= standsStillMS { // its heartbeats found no one until now
		s.wake.Set(e, max(e.WakeAt(), s.now.MS+graceMS))
	}
	s.unlogged.admitting = true // what they do to it is in the log with its admission
	for _, req := range waited {
		s.Decide(req)
	}
	s.unlogged.admitting = false
	if park && e.State == taskstate.Waiting && !e.left {
		s.carryOut(e, taskstate.Effects{Park: true}, false)
	}
	if trigger && e.State == taskstate.Ready && !e.left && !e.Triggered() {
		s.trigger(e)
	}
}

// carryOut files what follows from a record; logged: that is in the log. While
// replaying, what still matters in the end is done when the replay is over. Slots are
// released in any case: the previous owner may have died before it reported them, and
// releasing twice is harmless.
func (s step) carryOut(e *Entry, did taskstate.Effects, logged bool) {
	if did.Release != nil {
		s.Release(&e.Entry, &did, &s.fx.Effects)
	}
	s.Recount(&e.Entry)
	s.charge(e)
	s.wake.Set(e, e.WakeAt())
	if did.Trigger && e.State == taskstate.Ready {
		s.trigger(e)
	}
	if !did.Park && !did.Finish {
		return
	}
	if did.Finish {
		s.CountEnd(&e.Entry)
		s.Members.End(&e.Task)
		if s.replay == nil {
			s.fx.Ended = append(s.fx.Ended, e)
		}
	}
	s.stepAside(e)
	switch {
	case s.leaveIfStored(e), s.replay != nil, e.unlogged:
	case logged:
		s.dispatch(e)
	default:
		e.unlogged = true
		s.unlogged.entries = append(s.unlogged.entries, e)
	}
}

// dispatch sends a task that is parked or has ended on its way.
func (s step) dispatch(e *Entry) {
	if e.State.Finished() {
		s.archive.add(e, s.now.MS)
	} else {
		s.park.add(e, s.now.MS)
	}
}

// recovered ends a takeover.
func (s step) recovered() {
	s.Replayed()
	s.replay = nil
	s.snapshots.at = s.now.MS
	s.spendParked()
	s.lines.Firsts(func(first *line.Seat) { s.giveTurn(first) })
	for _, e := range s.inLine(func(e *Entry) bool { return e.State == taskstate.Ready }) {
		s.trigger(e)
	}
	for _, e := range s.inLine(func(e *Entry) bool { return e.State.Finished() || e.State == taskstate.Waiting }) {
		s.dispatch(e)
	}
	s.locator.Resume(s.Replica)
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
