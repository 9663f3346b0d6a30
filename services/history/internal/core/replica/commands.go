package replica

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// command applies a cancel or an update to the stay in memory. If there is none, or it is on its way
// into the timer store, the command waits.
func (r *Replica) command(h *held, e *Entry, now Now, fx *Effects) {
	switch {
	case e == nil:
		r.wait(h)
		r.search(h)
	case r.behindRedrive(h, e):
		h.until = nil
		r.wait(h)
		if e.left {
			r.search(h)
		}
	case h.redrive():
		r.redriveOf(h, e, fx)
	case !mayCommand(h, e):
		r.conclude(h, r.tooEarly(h, e), fx)
	case e.State == taskstate.Waiting:
		h.until = nil
		r.wait(h)
		if e.left {
			r.search(h)
		}
	default:
		r.apply(e, h, now, fx)
	}
}

// mayCommand tells whether a command concerns the task of a stay: a task of its domain that was
// there before it. A command from before the stay waited for it, if it lies behind the stay
// before, and behind the redrive that made it, if one did; one from before that one was decided long ago, unless an update has sent the task back into the timer store, and this one
// lies behind that update: then it waited while the task moved on.
func mayCommand(h *held, e *Entry) bool {
	after := e.Before
	if after == 0 {
		after = e.Position
	}
	if redriven := e.Redriven(); redriven.Before(h.seq, h.place) {
		return false
	}
	return sameDomain(h.ev, e) && (h.seq > after.Seq() || e.DecidedBefore(h.seq, h.place))
}

func sameDomain(ev *taskstate.Event, e *Entry) bool { return ev.Domain == "" || ev.Domain == e.Domain }

// search looks for the task of a command in the other stores.
func (r *Replica) search(h *held) {
	if r.replay != nil {
		return // Recovered does
	}
	h.until = nil
	under, ok := r.searching[h.ev.ID]
	if ok && under.asked && under.domain == h.ev.Domain {
		under.again = true
		r.searching[h.ev.ID] = under
	}
	r.want(h.ev.ID)
}

// searchWaiting looks for the task of the commands that wait for id.
func (r *Replica) searchWaiting(id ids.TaskID) {
	for _, h := range r.early.of(id) {
		if h.command() {
			r.search(h)
		}
	}
}

// want begins a search, one at a time for each task: two callers must not both be given it.
func (r *Replica) want(id ids.TaskID) {
	if _, ok := r.searching[id]; !ok {
		r.searching[id] = searching{}
		r.wanted = append(r.wanted, Search{ID: id, Cancel: true})
	}
}

// handOut gives out what is wanted. A search for commands asks for the caller whose command has
// waited for longest, up to the last command of his.
func (r *Replica) handOut(fx *Effects) {
	for _, want := range r.wanted {
		if want.Cancel && !r.fill(&want) {
			delete(r.searching, want.ID) // decided meanwhile
			continue
		}
		fx.Searches = append(fx.Searches, want)
	}
	r.wanted = r.wanted[:0]
}

func (r *Replica) fill(want *Search) (open bool) {
	for _, h := range r.early.of(want.ID) {
		if h.redrive() { // also one that waits for the lanes: what is found decides about it again
			want.Update, want.Redrive = true, true
		}
		switch {
		case !h.command() || h.until != nil:
			continue
		case !open:
			want.Domain, open = h.ev.Domain, true
		case h.ev.Domain != want.Domain:
			continue
		}
		want.Seq, want.At, want.Reason = h.seq, h.at, h.ev.Message
		want.Update = want.Update || h.ev.Kind.Changes()
	}
	if open {
		r.searching[want.ID] = searching{asked: true, domain: want.Domain}
	}
	return open
}

// ask looks for a task that has left, to give the verdict on an outcome that came again. If
// no one asks, there is nothing to decide. The outcome changes nothing, so one too many may be
// refused.
func (r *Replica) ask(h *held, fx *Effects) {
	switch {
	case h.ans == nil:
		return
	case r.questions >= questionsMax:
		r.conclude(h, taskstate.Verdict{Code: fault.Unavailable, Message: "too many outcomes wait for a search: repeat the entry"}, fx)
		return
	}
	r.questions++
	kept, ev := *h, *h.ev
	kept.ev = &ev
	h.ans.Waits(h.i)
	want := Search{ID: ev.ID, Domain: ev.Domain}
	q := r.asking[want]
	if q == nil {
		q = new(question)
		r.asking[want] = q
		r.wanted = append(r.wanted, want)
	}
	q.waiting = append(q.waiting, &kept)
}

// found takes in the answer to a search.
func (r *Replica) found(in *Found, now Now, fx *Effects) {
	if !in.Cancel {
		r.foundForOutcomes(in, now, fx)
		return
	}
	again := r.searching[in.ID].again
	delete(r.searching, in.ID)
	e := r.tasks[in.ID]
	in.forgetEnd()
	if in.Taken != nil && in.Unread != nil && in.Unread.Parkings >= in.Taken.Parkings {
		in.Taken = nil // it was fired before it was taken out
	}
	if in.Taken != nil && in.Archived == nil && (e == nil || e.left) {
		switch {
		case !r.goneOn(e, in.Taken):
			r.taken(in, now, fx)
		case e != nil:
			r.again(in.ID, now, fx)
		default: // the archive has it by now
			r.wantRest(in.ID)
		}
		return
	}
	if in.Update && !in.Take && in.Waiting != nil && in.Archived == nil && (e == nil || e.left) && !r.goneOn(e, in.Waiting) {
		if !r.refuseHere(in, fx) {
			r.wantRest(in.ID)
			return
		}
		r.waitsThere(in, again)
		return
	}
	leaving := e != nil && !e.left // the search is repeated when it has left
	if in.Unread != nil && e != nil && in.Unread.Parkings <= e.Parkings {
		in.Unread = nil // a repeated submit
	}
	back := r.conclusions(in, again, leaving, fx)
	if back != nil && !back.replayed && !in.Unsure && in.Unread == nil {
		r.bringBack(in.ID, now, fx)
	}
	if !leaving {
		r.wantRest(in.ID)
	}
}

// conclusions decides about the commands of a task that the timer store does not have, and returns the redrive that brings it back, if there is one.
func (r *Replica) conclusions(in *Found, again, leaving bool, fx *Effects) (back *held) {
	first, behind, ends := true, false, in.Ends
	for _, h := range r.early.take(in.ID) {
		own := h.command() && h.ev.Domain == in.Domain
		if own && (h.redrive() || behind) {
			if h.redrive() && !again && !leaving && r.foundRedrive(h, in, back, fx) {
				continue
			}
			if h.letter != nil {
				back = h
			}
			if !again && !leaving {
				h.waitFor(&ends)
				if in.Unsure {
					h.dead = in.end()
				}
			}
			first, behind = false, true
			r.early.add(h)
			continue
		}
		over := in.Archived != nil && (in.Archived.State != taskstate.Dead || !again && !leaving) // a dead one may have been redriven since it was looked for
		switch {
		case own && over && in.Unsure && in.Archived.State == taskstate.Dead && sameDomain(h.ev, in.Archived):
			h.dead = in.end()
		case own && over && r.foundArchived(h, in.Archived, fx):
			continue
		}
		if own && in.Unread != nil && !again && !leaving && r.foundUnread(h, in.Unread, first, fx) {
			continue
		}
		if own && !leaving && !again {
			h.waitFor(&ends)
		}
		first = first && h.command()
		r.early.add(h)
	}
	return back
}

// waitFor has a command wait until the lanes are read up to their ends. One that waits already goes on as it did, or each repeat of it would put it
// off: what came later is not about it, or is in memory.
func (h *held) waitFor(ends *[ids.Lanes]uint64) {
	if h.until == nil {
		h.until = ends
	}
}

// end is what decides of the end that the archive has: it may be kept for long.
func (in *Found) end() *Entry {
	if in.Archived == nil {
		return nil
	}
	e := &Entry{Task: in.Archived.Task}
	e.Payload, e.Result, e.Attempt.Progress, e.Steps = taskstate.Blob{}, taskstate.Blob{}, taskstate.Blob{}, nil
	return e
}

// wantRest searches for the commands that no search has answered for.
func (r *Replica) wantRest(id ids.TaskID) {
	for _, h := range r.early.of(id) {
		if h.command() && h.until == nil {
			r.want(id)
			return
		}
	}
}

// foundArchived gives the verdict on a command whose task has ended, and tells whether it is
// done with. If its submit is not read yet, the command applies to it as it did before.
func (r *Replica) foundArchived(h *held, archived *Entry, fx *Effects) bool {
	if !sameDomain(h.ev, archived) {
		r.conclude(h, notFound(), fx)
		return true
	}
	h.locate()
	v, _ := taskstate.Apply(&archived.Task, h.ev, h.at)
	r.conclude(h, v, fx)
	h.promised, h.ended = true, true
	return false
}

// foundUnread tells whether a command is done with, whose task lies behind the read levels.
// If not, the command applies when the task is read; the caller learns now what will be decided, unless
// other events wait before the command.
func (r *Replica) foundUnread(h *held, unread *Entry, first bool, fx *Effects) bool {
	if !mayCommand(h, unread) {
		if r.ofUnread(h, unread, unread.Before) {
			return false
		}
		r.conclude(h, r.tooEarly(h, unread), fx)
		return true
	}
	if first {
		r.conclude(h, foresee(&unread.Task, h), fx)
		h.promised = true
	}
	return false
}

// ofUnread tells whether a command is about a stay before the one that was found, and that one is not read here: it is decided when it is.
func (r *Replica) ofUnread(h *held, found *Entry, before ids.Position) bool {
	return sameDomain(h.ev, found) && r.Unread(before, found.Domain)
}

// foundForOutcomes decides about outcomes of a stay that has left: what the other stores
// hold says how it ended.
func (r *Replica) foundForOutcomes(in *Found, now Now, fx *Effects) {
	q := r.asking[in.Search]
	if q == nil {
		return
	}
	known := in.newest()
	_, taken := r.searching[in.ID] // the timer store may have given it up for a command, and the answer is on its way
	if (q.again || known == nil && taken && !in.Unsure) && r.tasks[in.ID] == nil {
		q.again = false
		r.wanted = append(r.wanted, in.Search)
		return
	}
	waiting := q.waiting
	delete(r.asking, in.Search)
	r.questions -= len(waiting)
	for _, h := range waiting {
		e := r.tasks[in.ID]
		switch {
		case e != nil && !e.leftBefore(h.ev.Fence.Position):
			r.event(h, now, fx)
		case known == nil && in.Unsure:
			r.conclude(h, taskstate.Verdict{Code: fault.Unknown, Message: "the task was not found in time; repeat the outcome"}, fx)
		case known == nil && e != nil:
			r.conclude(h, taskstate.ApplyToEarlierStay(&e.Task, h.ev), fx)
		case known == nil:
			r.conclude(h, notFound(), fx)
		case known.Position.Same(h.ev.Fence.Position):
			task := known.Task
			v, _ := taskstate.Apply(&task, h.ev, h.at)
			r.conclude(h, v, fx)
		default:
			r.conclude(h, taskstate.ApplyToEarlierStay(&known.Task, h.ev), fx)
		}
	}
}

// endWaits ends what waits for a task that did not come: every lane has passed the end of
// the log that it could lie in. A tick looks at some, those not looked at for longest first.
func (r *Replica) endWaits(now Now, fx *Effects) {
	for range min(endWaitsMax, len(r.early.byID)) {
		first := r.early.order.Front()
		if first == nil {
			return
		}
		brought := false
		for _, h := range r.early.take(first.Value.(*early).id) {
			switch {
			case brought:
				r.event(h, now, fx)
			case r.stillComing(h):
				r.early.add(h)
			case h.letter != nil:
				brought = true
				r.bring(h, now, fx)
			case h.dead != nil && h.redrive():
				r.concludeRedrive(h, &h.dead.Task, fx)
			case h.dead != nil:
				r.foundArchived(h, h.dead, fx)
			default:
				r.conclude(h, notFound(), fx)
			}
		}
	}
}

func (r *Replica) stillComing(h *held) bool {
	if h.until == nil {
		return true
	}
	for lane := range ids.Lane(ids.Lanes) {
		if !r.Passed(lane, h.until[lane], h.ev.Domain) {
			return true
		}
	}
	if e := r.tasks[h.ev.ID]; e != nil && e.left && e.State == taskstate.Waiting && !h.ended {
		r.search(h) // it was parked here, so it is somewhere, or another owner has voided that
		return true
	}
	return false
}
