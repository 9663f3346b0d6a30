package replica

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Letter names a dead letter in its stream.
type Letter struct {
	Domain, Tasklist string
	ID               ids.TaskID
	Seq              uint64
}

func (h *held) redrive() bool { return h.ev.Kind == taskstate.Redrove }

// behindRedrive tells whether a command lies behind a redrive that waits: what it is about is known when that is carried out.
func (r *Replica) behindRedrive(h *held, e *Entry) bool {
	if e.State != taskstate.Dead {
		return false
	}
	for _, w := range r.early.of(e.ID) {
		if w.redrive() && w.before(h) && sameDomain(w.ev, e) {
			return true
		}
	}
	return false
}

// tooEarly is the verdict on a command that is not about the stay that was found. An earlier stay knows its own changes.
func (r *Replica) tooEarly(h *held, e *Entry) taskstate.Verdict {
	if redriven := e.Redriven(); sameDomain(h.ev, e) && redriven.Before(h.seq, h.place) {
		h.locate()
		if v, known := e.Again(h.ev); known {
			return v
		}
		return taskstate.Verdict{Code: fault.FailedPrecondition, Message: "the task was a dead letter, and has been redriven since"}
	}
	return notFound()
}

// redriveOf decides about a redrive of which memory has the task. The letter is read before the task comes back, and it is stored before the
// task leaves. One that names a later stay waits for it: this owner is behind another one.
func (r *Replica) redriveOf(h *held, e *Entry, fx *Effects) {
	asked := h.ev.Redrive
	switch {
	case !sameDomain(h.ev, e):
		r.conclude(h, notFound(), fx)
	case e.State == taskstate.Waiting, r.asksForLetter(h, e):
		h.until, h.letter = nil, nil
		r.wait(h)
		if e.left {
			r.search(h)
		}
	case e.State == taskstate.Dead && asked.Letter == 0 && !e.RedrivenBy(h.ev):
		r.conclude(h, letterComes(), fx)
	default:
		r.concludeRedrive(h, &e.Task, fx)
	}
}

// asksForLetter tells whether the dead letter of e, which is dead, says what becomes of a redrive: it is the one that is named, or none was, since the caller looked
// before it was stored, or it is purged.
func (r *Replica) asksForLetter(h *held, e *Entry) bool {
	asked := h.ev.Redrive
	if e.State != taskstate.Dead || e.RedrivenBy(h.ev) {
		return false
	}
	return asked.Letter > 0 && asked.Parkings >= e.Parkings || asked.Letter == 0 && e.left
}

func letterComes() taskstate.Verdict {
	return taskstate.Verdict{Code: fault.Unknown, Message: "its dead letter was being stored: repeat the entry"}
}

// concludeRedrive gives the verdict on a redrive that is not carried out, and gives away a letter of a stay before the one that t is in: its task came
// back, and an owner died before it could.
func (r *Replica) concludeRedrive(h *held, t *taskstate.Task, fx *Effects) {
	if !sameDomain(h.ev, &Entry{Task: *t}) {
		r.conclude(h, notFound(), fx)
		return
	}
	asked := h.ev.Redrive
	if asked.Letter > 0 && t.Parkings > asked.Parkings && t.Redriven().Count > 0 {
		fx.Letters = append(fx.Letters, Letter{t.Domain, asked.Tasklist, t.ID, asked.Letter})
	}
	r.conclude(h, taskstate.RefuseRedrive(t, h.ev), fx)
}

// refuseHere ends the redrives of a task that waits in the timer store, and what is about an earlier stay of it. It tells whether other commands wait for it.
func (r *Replica) refuseHere(in *Found, fx *Effects) (others bool) {
	redriven := in.Waiting.Redriven()
	for _, h := range r.early.take(in.ID) {
		switch own := h.command() && h.ev.Domain == in.Domain; {
		case own && h.redrive():
			r.concludeRedrive(h, &in.Waiting.Task, fx)
		case own && redriven.Before(h.seq, h.place) && !r.ofUnread(h, in.Waiting, in.Waiting.Position):
			r.conclude(h, r.tooEarly(h, in.Waiting), fx)
		default:
			others = others || own
			r.early.add(h)
		}
	}
	return others
}

// newest is the last stay that a search has found.
func (in *Found) newest() (last *Entry) {
	for _, e := range [...]*Entry{in.Archived, in.Taken, in.Waiting, in.Unread} {
		if e != nil && (last == nil || e.Parkings > last.Parkings) {
			last = e
		}
	}
	return last
}

// forgetEnd leaves out an end in the archive after which the task came back: what else was found is a later stay.
func (in *Found) forgetEnd() {
	if last := in.newest(); in.Archived != nil && last.Parkings > in.Archived.Parkings {
		in.Archived = nil
	}
}

// foundRedrive takes in where the task of a redrive is, and tells whether that is done with. If not, it waits, with its letter if there is one; before is
// such a one that lies before it.
//
// A letter that is there says that no stay has followed, unless an owner died after it had parked one and before it could delete the letter. Then its
// checkpoint lies before the redrive that it carried out, so only an owner that reads that again, in a takeover, has to make sure: by what the
// lanes held when the timer store had no later stay.
func (r *Replica) foundRedrive(h *held, in *Found, before *held, fx *Effects) (over bool) {
	last, asked := in.newest(), h.ev.Redrive
	switch {
	case before != nil && (before.ev.Redrive.Request == asked.Request || before.letter.RedrivenBy(h.ev)):
		r.conclude(h, taskstate.Verdict{}, fx)
	case before != nil:
		r.conclude(h, taskstate.Verdict{Code: fault.FailedPrecondition, Message: "the task is redriven by another request"}, fx)
	case last == nil && in.Letter == nil, last == in.Unread && in.Letter == nil && last.Parkings <= asked.Parkings:
		return false // it is decided when that is read: what follows it in the log may be the end that is meant
	case in.Unsure && last != nil && last == in.Archived && in.Letter == nil && sameDomain(h.ev, last) && !last.RedrivenBy(h.ev):
		return false // when the lanes have passed, it is decided by that end
	case last != nil && last == in.Unread && last.Parkings > asked.Parkings && sameDomain(h.ev, last):
		if !h.promised {
			r.concludeRedrive(h, &last.Task, fx)
			h.promised = true
		}
		return false // what lies behind it is about that stay
	case last != nil && (in.Letter == nil || last.Parkings > in.Letter.Parkings || last.RedrivenBy(h.ev)):
		r.concludeRedrive(h, &last.Task, fx)
	case in.Letter.RedrivenBy(h.ev) || asked.Letter > 0 && in.Letter.Parkings != asked.Parkings:
		r.concludeRedrive(h, &in.Letter.Task, fx)
	case asked.Letter == 0:
		r.conclude(h, letterComes(), fx)
	default:
		r.conclude(h, taskstate.Verdict{}, fx)
		h.promised, h.letter, h.letterSeq = true, in.Letter, in.LetterSeq
		return false
	}
	return true
}

// bringBack brings in the task of the first redrive that has its letter. Commands behind that are decided then.
func (r *Replica) bringBack(id ids.TaskID, now Now, fx *Effects) {
	brought := false
	for _, h := range r.early.take(id) {
		switch {
		case brought:
			r.event(h, now, fx)
		case h.letter != nil:
			brought = true
			r.bring(h, now, fx)
		default:
			r.early.add(h)
		}
	}
}

// bring makes the next stay of a dead letter. It goes into the timer store, and pins its redrive until that has it and the letter is deleted. Commands
// that wait and lie before the redrive are about the dead letter, and end here: the search for one that waited on would take the task out of the timer
// store, and no later owner would look for it there.
func (r *Replica) bring(h *held, now Now, fx *Effects) {
	e := h.letter
	h.letter = nil
	e.shared, e.arrivedAt = e.Position.Shared(), h.at
	r.live++
	r.tasks[e.ID], r.pinned[e.ID] = e, e
	h.locate()
	did := taskstate.Bring(&e.Task, h.ev, h.at)
	redriven := e.Redriven()
	for _, before := range r.early.take(e.ID) {
		if before.command() && redriven.Before(before.seq, before.place) && !r.ofUnread(before, e, e.Position) {
			r.conclude(before, r.tooEarly(before, e), fx)
		} else {
			r.early.add(before)
		}
	}
	r.enqueue(e)
	r.letters[e.ID] = Letter{e.Domain, e.Tasklist, e.ID, h.letterSeq}
	r.carryOut(e, did, now, fx, true)
	fx.Counts.Redriven++
	if e.left { // the tail of the timer store has it
		r.spend(e, fx)
	}
}

// spend gives the letter of a task away that came back: with the job that parks the task, unless the timer store has that. Until the job is
// stored a snapshot has it: who takes over parks the task again, and deletes the letter.
func (r *Replica) spend(e *Entry, fx *Effects) {
	l, ok := r.letters[e.ID]
	switch {
	case !ok:
	case e.left:
		delete(r.letters, e.ID)
		fx.Letters = append(fx.Letters, l)
	default:
		fx.ParkLetters = append(fx.ParkLetters, l)
	}
}

// spent takes in that the letters of the job under way are deleted.
func (r *Replica) spent() {
	for _, l := range r.parkLetters {
		if r.letters[l.ID] == l {
			delete(r.letters, l.ID)
		}
	}
	r.parkLetters = nil
}

// spendParked gives the letters away of which the tail of the timer store has the tasks.
func (r *Replica) spendParked(fx *Effects) {
	for id, l := range r.letters {
		if e := r.tasks[id]; e == nil || e.left {
			delete(r.letters, id)
			fx.Letters = append(fx.Letters, l)
		}
	}
	slices.SortFunc(fx.Letters, func(a, b Letter) int { return cmp.Compare(a.Seq, b.Seq) })
}

// isBack tells whether e is a later life of a task that is known as dead: it was redriven, so the end that is known is stored.
func isBack(known, e *Entry) bool {
	return known != nil && known.State == taskstate.Dead && e.Parkings > known.Parkings && e.Redriven().Count > known.Redriven().Count
}
