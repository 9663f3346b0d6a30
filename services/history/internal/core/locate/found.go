package locate

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Found takes in the answer to a search.
func (l *Locator) Found(in *Found, p Partition, d Decisions) {
	if !in.Command {
		l.foundForOutcomes(in, p, d)
		return
	}
	again := l.searching[in.ID].again
	delete(l.searching, in.ID)
	t, left := p.Memory(in.ID)
	in.forgetEnd()
	leaving := t != nil && !left // the search is repeated when it has left
	if in.Unread != nil && t != nil && in.Unread.Parkings <= t.Parkings {
		in.Unread = nil // a repeated submit
	}
	back := l.conclusions(in, !again && !leaving, p, d)
	if back != nil && !back.Replayed && !in.Unsure && in.Unread == nil {
		l.bringBack(in.ID, d)
	}
	if !leaving {
		l.wantRest(in.ID)
	}
}

// conclusions decides about the commands of one caller, whose task was looked for, and returns the redrive that brings it back, if there is one. Fresh: what was
// found is not out of date.
func (l *Locator) conclusions(in *Found, fresh bool, p Partition, d Decisions) (back *Request) {
	behind := false
	for _, r := range l.Take(in.ID) {
		switch {
		case r.Ev.Domain != in.Domain:
			l.add(r)
			continue
		case r.Redrive() || behind:
			if r.Redrive() && fresh && foundRedrive(r, in, back, d) {
				continue
			}
			if r.deadLetter != nil {
				back = r
			}
			if fresh && in.Unsure {
				r.dead = in.end()
			}
			behind = true
		case in.Archived != nil && (in.Archived.State != taskstate.Dead || fresh && !in.Unsure): // a dead one may have been redriven since it was looked for
			foundArchived(r, in.Archived, d)
			continue
		case in.Archived != nil && fresh && OfDomain(r.Ev, in.Archived):
			r.dead = in.end()
			if in.Unread != nil && foundUnread(r, in.Unread, p, d) {
				continue
			}
		case in.Unread != nil && fresh && foundUnread(r, in.Unread, p, d):
			continue
		}
		if fresh {
			r.waitFor(in)
		}
		l.add(r)
	}
	return back
}

// foundArchived gives the verdict on a command whose task has ended.
func foundArchived(r *Request, archived *taskstate.Task, d Decisions) {
	if !OfDomain(r.Ev, archived) {
		d.Conclude(r, NotFound())
		return
	}
	r.Locate()
	v, _ := taskstate.Apply(archived, r.Ev, r.At)
	d.Conclude(r, v)
}

// foundUnread reports whether a command is done with, whose task lies behind the read levels. If not, the command applies when the task is read; the
// caller learns now what will be decided.
func foundUnread(r *Request, unread *taskstate.Task, p Partition, d Decisions) bool {
	if !r.Concerns(unread) {
		if ofUnread(r, unread, unread.Before, p) {
			return false
		}
		d.Conclude(r, r.TooEarly(unread))
		return true
	}
	d.Conclude(r, r.foresee(unread, false))
	r.Promised = true
	return false
}

// ofUnread reports whether a command is about a stay before the one that was found, and that one is not read here: it is decided when it is.
func ofUnread(r *Request, found *taskstate.Task, before ids.Position, p Partition) bool {
	return OfDomain(r.Ev, found) && p.Unread(before, found.Domain, found.Tasklist)
}

// foundRedrive takes in where the task of a redrive is, and reports whether that is done with. If not, it waits, with its letter if there is one; before is
// such a one that lies before it.
//
// A letter that is there says that no stay has followed, unless an owner died after it had parked one and before it could delete the letter. Then its
// checkpoint lies before the redrive that it carried out, so only an owner that reads that again, in a takeover, has to make sure: by what the
// lanes held when the timer store had no later stay.
func foundRedrive(r *Request, in *Found, before *Request, d Decisions) (over bool) {
	last, asked := in.newest(), r.Ev.Redrive
	switch {
	case before != nil && (before.Ev.Redrive.Request == asked.Request || before.deadLetter.RedrivenBy(r.Ev)):
		d.Conclude(r, taskstate.Verdict{})
	case before != nil:
		d.Conclude(r, taskstate.Verdict{Code: fault.FailedPrecondition, Message: "the task is redriven by another request"})
	case in.Coming, last == nil && in.DeadLetter == nil, last == in.Unread && in.DeadLetter == nil && last.Parkings <= asked.Parkings:
		return false // it is decided when that is read: what follows it in the log may be the end that is meant
	case in.Unsure && last != nil && last == in.Archived && in.DeadLetter == nil && OfDomain(r.Ev, last) && !last.RedrivenBy(r.Ev):
		return false // when the lanes have passed, it is decided by that end
	case last != nil && last == in.Unread && last.Parkings > asked.Parkings && OfDomain(r.Ev, last):
		if !r.Promised {
			ConcludeRedrive(r, last, d)
			r.Promised = true
		}
		return false // what lies behind it is about that stay
	case last != nil && (in.DeadLetter == nil || last.Parkings > in.DeadLetter.Parkings || last.RedrivenBy(r.Ev)):
		ConcludeRedrive(r, last, d)
	case in.DeadLetter.RedrivenBy(r.Ev) || asked.Letter > 0 && in.DeadLetter.Parkings != asked.Parkings:
		ConcludeRedrive(r, in.DeadLetter, d)
	case asked.Letter == 0:
		d.Conclude(r, DeadLetterComes())
	default:
		d.Conclude(r, taskstate.Verdict{})
		r.Promised, r.deadLetter, r.deadLetterSeq = true, in.DeadLetter, in.DeadLetterSeq
		return false
	}
	return true
}

// ConcludeRedrive gives the verdict on a redrive that is not carried out, and deletes a letter of a stay before the one that t is in: its task came
// back, and an owner died before it could.
func ConcludeRedrive(r *Request, t *taskstate.Task, d Decisions) {
	if !OfDomain(r.Ev, t) {
		d.Conclude(r, NotFound())
		return
	}
	asked := r.Ev.Redrive
	if asked.Letter > 0 && t.Parkings > asked.Parkings && t.Redriven().Count > 0 {
		d.DropDeadLetter(DeadLetter{t.Domain, asked.Tasklist, t.ID, asked.Letter})
	}
	d.Conclude(r, taskstate.RefuseRedrive(t, r.Ev))
}

// bringBack brings in the task of the first redrive that has its letter. Commands behind that are decided then.
func (l *Locator) bringBack(id ids.TaskID, d Decisions) {
	brought := false
	for _, r := range l.Take(id) {
		switch {
		case brought:
			d.Decide(r)
		case r.deadLetter != nil:
			brought = true
			d.Bring(r)
		default:
			l.add(r)
		}
	}
}

// Brought ends the commands that wait for a task and lie before the redrive that has just brought it back: they are about the dead letter. The search for
// one that waited on would have the task fired, and it would be applied to the wrong stay.
func (l *Locator) Brought(t *taskstate.Task, p Partition, d Decisions) {
	redriven := t.Redriven()
	for _, r := range l.Take(t.ID) {
		if redriven.Before(r.Seq, r.Place) && !ofUnread(r, t, t.Position, p) {
			d.Conclude(r, r.TooEarly(t))
		} else {
			l.add(r)
		}
	}
}

// MissedLater reports whether the later stay at pos of a task has come and gone unseen: a takeover has read t again, which was not known to be stored, and
// not that one, which was.
func MissedLater(t *taskstate.Task, left bool, pos ids.Position) bool {
	return left && t.Position.Seq() < pos.Seq()
}
