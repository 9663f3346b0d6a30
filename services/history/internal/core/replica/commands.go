package replica

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/locate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// The types about tasks that are not in memory, for packages that know the replica only.
type (
	Search  = locate.Search
	Found   = locate.Found
	Letter  = locate.DeadLetter
	Waiting = locate.Waiting
	Ahead   = locate.Ahead
)

// step is one step of a replica: its time, and what follows from it. It carries out what the locator decides.
type step struct {
	*Replica
	now Now
	fx  *Effects
}

// Memory implements locate.Partition.
func (r *Replica) Memory(id ids.TaskID) (t *taskstate.Task, left bool) {
	e := r.tasks[id]
	if e == nil {
		return nil, false
	}
	return &e.Task, e.left
}

// Conclude implements locate.Decisions: it gives an event its verdict.
func (s step) Conclude(req *locate.Request, v taskstate.Verdict) {
	if req.Answer != nil && !req.Promised {
		s.answers.Conclude(req.Answer, req.I, v, &s.fx.Answers)
	}
}

// Decide implements locate.Decisions.
func (s step) Decide(req *locate.Request) { s.decide(req, s.tasks[req.Ev.ID]) }

// DropDeadLetter implements locate.Decisions.
func (s step) DropDeadLetter(l Letter) { s.fx.Letters = append(s.fx.Letters, l) }

// command applies a command to the stay in memory. If there is none, or it is being written into the timer store, or has to be before its
// dead letter is deleted, the command waits, and so do those behind it. Whether it is being written is not in the log: an owner that takes over
// applies the command to a stay that the timer store does not have. No verdict was given, so that is the first one.
func (s step) command(req *locate.Request, e *Entry) {
	switch {
	case e == nil:
		s.wait(req, true)
	case s.locator.BehindRedrive(req, &e.Task):
		s.wait(req, e.left)
	case req.Redrive():
		s.redrive(req, e)
	case !req.Concerns(&e.Task):
		s.Conclude(req, req.TooEarly(&e.Task))
	case e.State == taskstate.Waiting && (e.left || e.storing || s.letters[e.ID].Seq > 0 || s.locator.Waits(e.ID)):
		s.wait(req, e.left)
	default:
		s.apply(e, req)
	}
}

// wait lets a command wait for its task, and has that looked for, if it is not in memory.
func (r *Replica) wait(req *locate.Request, absent bool) {
	r.locator.Wait(req)
	if absent {
		r.locator.Search(req)
	}
}

// redrive decides about a redrive of which memory has the task. The letter is read before the task comes back, and it is stored before the
// task leaves. One that names a later stay waits for it: this owner is behind another one.
func (s step) redrive(req *locate.Request, e *Entry) {
	switch asked := req.Ev.Redrive; {
	case !locate.OfDomain(req.Ev, &e.Task):
		s.Conclude(req, locate.NotFound())
	case e.State == taskstate.Waiting && !e.left && s.letters[e.ID].Seq > 0, asksForLetter(req, e):
		s.wait(req, e.left)
	case e.State == taskstate.Dead && asked.Letter == 0 && !e.RedrivenBy(req.Ev):
		s.Conclude(req, locate.DeadLetterComes())
	default:
		locate.ConcludeRedrive(req, &e.Task, s)
	}
}

// asksForLetter reports whether the dead letter of e, which is dead, says what becomes of a redrive: it is the one that is named, or none was, since the caller looked
// before it was stored, or it is purged.
func asksForLetter(req *locate.Request, e *Entry) bool {
	asked := req.Ev.Redrive
	if e.State != taskstate.Dead || e.RedrivenBy(req.Ev) {
		return false
	}
	return asked.Letter > 0 && asked.Parkings >= e.Parkings || asked.Letter == 0 && e.left
}

// Bring implements locate.Decisions. It makes the next stay of a dead letter, which goes into the timer store; then the letter is deleted.
func (s step) Bring(req *locate.Request) {
	task, letter := req.DeadLetter()
	e := &Entry{Task: *task, arrivedAt: req.At}
	e.shared = e.Position.Shared()
	s.live++
	s.tasks[e.ID] = e
	req.Locate()
	did := taskstate.Bring(&e.Task, req.Ev, req.At)
	s.locator.Brought(&e.Task, s, s)
	s.enqueue(e)
	s.letters[e.ID] = letter
	s.carryOut(e, did, true)
	s.fx.Counts.Redriven++
	if e.left { // the tail of the timer store has it
		s.spend(e)
	}
}

// spend gives the letter of a task away that came back: with the job that parks the task, unless the timer store has that. Until the job is
// stored a snapshot has it: who takes over parks the task again, and deletes the letter.
func (s step) spend(e *Entry) {
	l, ok := s.letters[e.ID]
	switch {
	case !ok:
	case e.left:
		delete(s.letters, e.ID)
		s.fx.Letters = append(s.fx.Letters, l)
	default:
		s.fx.ParkLetters = append(s.fx.ParkLetters, l)
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
func (s step) spendParked() {
	for id, l := range s.letters {
		if e := s.tasks[id]; e == nil || e.left {
			delete(s.letters, id)
			s.fx.Letters = append(s.fx.Letters, l)
		}
	}
	slices.SortFunc(s.fx.Letters, func(a, b Letter) int { return cmp.Compare(a.Seq, b.Seq) })
}

// isBack reports whether e is a later life of a task that is known as dead: it was redriven, so the end that is known is stored.
func isBack(known, e *Entry) bool {
	return known != nil && known.State == taskstate.Dead && e.Parkings > known.Parkings && e.Redriven().Count > known.Redriven().Count
}

// Waiting tells whether more commands may come.
func (r *Replica) Waiting() Waiting { return r.locator.Waiting() }
