package replica

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// goneOn tells whether a task has gone on since the stay that the timer store gave up, or has: it was fired before that. Memory has e of it. What
// another owner has put into the archive must not go back into the timer store.
func (r *Replica) goneOn(e, taken *Entry) bool {
	return e != nil && (e.State.Finished() && !isBack(e, taken) || e.Parkings > taken.Parkings) || r.past.knows(taken)
}

// waitsThere goes on with a search for updates, whose task waits in the timer store. If the stay before that is not read here, as a takeover from
// an old checkpoint may leave it, the commands wait for it: read, it goes through all that has happened to it, and them in their place. Had
// the timer store given up what came of it, a later owner could read it and not know.
func (r *Replica) waitsThere(in *Found, again bool) {
	w := in.Waiting
	if !r.Unread(w.Position, w.Domain) {
		r.searching[in.ID] = searching{}
		r.wanted = append(r.wanted, Search{ID: in.ID, Cancel: true, Take: true})
		return
	}
	ends := in.Ends
	for _, h := range r.early.of(in.ID) {
		if h.command() && h.ev.Domain == in.Domain && !again {
			h.until = &ends
		}
	}
	r.wantRest(in.ID)
}

// again decides once more about what waits for a task.
func (r *Replica) again(id ids.TaskID, now Now, fx *Effects) {
	for _, h := range r.early.take(id) {
		r.event(h, now, fx)
	}
}

// taken brings in a task that the timer store gave up for commands. All that wait and may are carried out, in log order, no matter
// which search was answered first. Then it has ended, or goes back into the timer store as its next stay, also if it is to run at
// once: only what lies in the log can be granted. It pins the first of the commands, so that a takeover searches again if this owner dies before
// the other store has the task. One that was carried out already is known by its place in the log.
func (r *Replica) taken(in *Found, now Now, fx *Effects) {
	e := in.Taken
	waiting := r.early.take(in.ID)
	at := in.At
	for _, h := range waiting {
		if h.command() && mayCommand(h, e) {
			at = h.at
			break
		}
	}
	e.shared, e.arrivedAt = e.Position.Shared(), at
	r.live++
	r.tasks[in.ID], r.pinned[in.ID] = e, e
	e.State = taskstate.Waiting
	r.enqueue(e)
	r.carryOut(e, r.commandTaken(e, in, waiting, fx), now, fx, true)
	for _, h := range waiting {
		if !h.done {
			r.event(h, now, fx)
		}
	}
}

// foresee is the verdict on a command when its task will be read, t, which has seen those before it.
func foresee(t *taskstate.Task, h *held) (v taskstate.Verdict) {
	h.locate()
	switch {
	case t.State.Finished():
		v, _ = taskstate.Apply(t, h.ev, h.at)
	case h.ev.Kind == taskstate.Cancel:
		taskstate.CancelUnseen(t, h.ev.Message, h.at)
	case h.ev.Kind.OfKey() && t.DueAt <= h.at: // else it is parked, and is not the first one
		t.State = taskstate.Ready
		v, _ = taskstate.Apply(t, h.ev, h.at)
	default:
		v = taskstate.ChangeAway(t, h.ev, h.at)
	}
	return v
}

// commandTaken carries out the commands that wait for a task that the timer store gave up, up to a cancel.
func (r *Replica) commandTaken(e *Entry, in *Found, waiting []*held, fx *Effects) taskstate.Effects {
	commands := 0
	for _, h := range waiting {
		if h.redrive() {
			r.concludeRedrive(h, &e.Task, fx)
			h.done = true
			continue
		}
		if !h.command() || !mayCommand(h, e) {
			continue
		}
		commands++
		if h.ev.Kind == taskstate.Cancel {
			return taskstate.CancelUnseen(&e.Task, h.ev.Message, h.at)
		}
		h.locate()
		r.conclude(h, taskstate.ChangeAway(&e.Task, h.ev, h.at), fx)
		h.done = true
	}
	if commands == 0 { // they were decided meanwhile
		if !in.Update && in.Seq > e.Redriven().Seq { // else it was about the task before it was redriven
			return taskstate.CancelUnseen(&e.Task, in.Reason, in.At)
		}
	}
	return taskstate.ParkAgain(&e.Task)
}
