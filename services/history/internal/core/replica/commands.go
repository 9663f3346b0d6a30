package replica

import (
	"bytes"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// command applies a cancel to the stay in memory. If there is none, or it is on its way
// into the timer store, the command waits.
func (r *Replica) command(h *held, e *Entry, now Now, fx *Effects) {
	switch {
	case e == nil:
		r.wait(h)
		r.search(h)
	case e.State == taskstate.Waiting && !sameDomain(h.ev, e):
		r.settle(h, notFound(), fx)
	case e.State == taskstate.Waiting:
		r.wait(h)
		if e.left {
			r.search(h)
		}
	default:
		r.apply(e, h, now, fx)
	}
}

func sameDomain(ev *taskstate.Event, e *Entry) bool { return ev.Domain == "" || ev.Domain == e.Domain }

// search looks for the task of a command in the other stores, once at a time for each caller.
func (r *Replica) search(h *held) {
	if r.replay != nil {
		return // Recovered does
	}
	key := Search{ID: h.ev.ID, Domain: h.ev.Domain, Cancel: true}
	if r.searching[key] {
		return
	}
	r.searching[key] = true
	want := key
	want.Seq, want.At, want.Reason = h.seq, h.at, h.ev.Message
	r.wanted = append(r.wanted, want)
}

// searchWaiting looks for the task of the commands that wait for id.
func (r *Replica) searchWaiting(id ids.TaskID) {
	for _, h := range r.early[id] {
		if h.command() && !h.promised {
			r.search(h)
		}
	}
}

// ask looks for a task that has left, to give the verdict on an outcome that came again. If
// nobody asks, there is nothing to decide.
func (r *Replica) ask(h *held) {
	if h.ans == nil {
		return
	}
	kept, ev := *h, *h.ev
	kept.ev = &ev
	r.asking[ev.ID] = append(r.asking[ev.ID], &kept)
	if len(r.asking[ev.ID]) == 1 {
		r.wanted = append(r.wanted, Search{ID: ev.ID})
	}
}

// found takes in the answer to a search.
func (r *Replica) found(in *Found, now Now, fx *Effects) {
	if !in.Cancel {
		r.foundForOutcomes(in, now, fx)
		return
	}
	delete(r.searching, Search{ID: in.ID, Domain: in.Domain, Cancel: true})
	if e := r.tasks[in.ID]; in.Taken != nil && in.Archived == nil && (e == nil || e.left) {
		r.cancelTaken(in, now, fx)
		return
	}
	waiting := r.early[in.ID]
	kept := waiting[:0:0]
	for _, h := range waiting {
		if !h.command() || h.ev.Domain != in.Domain || h.promised || !r.foundFor(h, in, fx) {
			kept = append(kept, h)
		}
	}
	r.keepEarly(in.ID, kept)
}

// foundFor decides about a command whose task was looked for; false = it still waits.
func (r *Replica) foundFor(h *held, in *Found, fx *Effects) bool {
	switch {
	case in.Archived != nil && sameDomain(h.ev, in.Archived):
		// Its submit may not be read yet: then the command applies to it as it did before.
		v, _ := taskstate.Apply(&in.Archived.Task, h.ev, h.at)
		r.settle(h, v, fx)
		h.promised = true
	case in.Archived != nil, in.Unread != nil && !sameDomain(h.ev, in.Unread):
		r.settle(h, notFound(), fx)
		return true
	case in.Unread != nil:
		r.settle(h, taskstate.Verdict{}, fx)
		h.promised = true
	}
	h.until = &in.Ends
	return false
}

// cancelTaken brings in a task that the timer store gave up for a command. It pins the
// command, so that a takeover searches again if this owner dies before it is archived.
func (r *Replica) cancelTaken(in *Found, now Now, fx *Effects) {
	e := in.Taken
	e.pinned, e.pin = true, in.Seq-1
	e.since, e.lastEvent = r.eventAt, r.eventAt
	r.tasks[in.ID], r.pinned[in.ID] = e, e
	e.State = taskstate.Waiting
	r.lineUp(e)
	did := taskstate.CancelUnseen(&e.Task, in.Reason, in.At)
	r.carryOut(e, did, in.Seq, now, fx)
	waiting := r.early[in.ID]
	delete(r.early, in.ID)
	for _, h := range waiting {
		r.event(h, now, fx)
	}
}

// foundForOutcomes decides about outcomes of a stay that has left: what the other stores
// hold says how it ended.
func (r *Replica) foundForOutcomes(in *Found, now Now, fx *Effects) {
	waiting := r.asking[in.ID]
	delete(r.asking, in.ID)
	known := in.Archived
	if known == nil {
		known = in.Waiting
	}
	for _, h := range waiting {
		e := r.tasks[in.ID]
		switch {
		case e != nil:
			r.event(h, now, fx)
		case known == nil:
			r.settle(h, notFound(), fx)
		case known.Position == h.ev.Fence.Position:
			task := known.Task
			v, _ := taskstate.Apply(&task, h.ev, h.at)
			r.settle(h, v, fx)
		default:
			r.settle(h, taskstate.ApplyToEarlierStay(&known.Task, h.ev), fx)
		}
	}
}

// endWaits ends what waits for a task that did not come: every lane has passed the end of
// the log that it could lie in.
func (r *Replica) endWaits(now Now, fx *Effects) {
	for _, id := range r.earlyInOrder() {
		waiting := r.early[id]
		kept := waiting[:0:0]
		for _, h := range waiting {
			if r.stillComing(h) {
				kept = append(kept, h)
			} else {
				r.settle(h, notFound(), fx)
			}
		}
		if len(kept) < len(waiting) {
			r.keepEarly(id, kept)
		}
	}
}

func (r *Replica) stillComing(h *held) bool {
	if !h.command() {
		pos := h.ev.Fence.Position
		return r.unread(pos) || r.isHeld(h.ev.ID, pos)
	}
	if h.until == nil {
		return true
	}
	for i, l := range r.lanes {
		if l.ReadLevel() < h.until[i] {
			return true
		}
	}
	return len(r.held[h.ev.ID]) > 0
}

func (r *Replica) keepEarly(id ids.TaskID, kept []*held) {
	if len(kept) == 0 {
		delete(r.early, id)
	} else {
		r.early[id] = kept
	}
}

// earlyInOrder are the tasks that something waits for, in a fixed order.
func (r *Replica) earlyInOrder() []ids.TaskID {
	if len(r.early) == 0 {
		return nil
	}
	all := make([]ids.TaskID, 0, len(r.early))
	for id := range r.early {
		all = append(all, id)
	}
	slices.SortFunc(all, func(a, b ids.TaskID) int { return bytes.Compare(a[:], b[:]) })
	return all
}
