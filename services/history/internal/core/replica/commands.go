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
	Search     = locate.Search
	Found      = locate.Found
	Letter     = locate.DeadLetter
	EventPlace = locate.Place
	Waiting    = locate.Waiting
)

// deciding is a step of a replica, which carries out what the locator decides.
type deciding struct {
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

// Conclude implements locate.Decisions.
func (d deciding) Conclude(req *locate.Request, v taskstate.Verdict) { d.conclude(req, v, d.fx) }

// Decide implements locate.Decisions.
func (d deciding) Decide(req *locate.Request) { d.decide(req, d.tasks[req.Ev.ID], d.now, d.fx) }

// DropDeadLetter implements locate.Decisions.
func (d deciding) DropDeadLetter(l Letter) { d.fx.Letters = append(d.fx.Letters, l) }

// command applies a cancel or an update to the stay in memory. If there is none, or it is being written into the timer store, or has to be before its
// dead letter is deleted, the command waits, and so do those behind it. Whether it is being written is not in the log: an owner that takes over
// applies the command to a stay that the timer store does not have. No verdict was given, so that is the first one.
func (r *Replica) command(req *locate.Request, e *Entry, now Now, fx *Effects) {
	d := deciding{r, now, fx}
	switch {
	case e == nil:
		r.wait(req, true)
	case r.locator.BehindRedrive(req, &e.Task):
		r.wait(req, e.left)
	case req.Redrive():
		r.redrive(req, e, d)
	case !req.Concerns(&e.Task):
		d.Conclude(req, req.TooEarly(&e.Task))
	case e.State == taskstate.Waiting && (e.left || e.storing || r.letters[e.ID].Seq > 0 || r.locator.Waits(e.ID)):
		r.wait(req, e.left)
	default:
		r.apply(e, req, now, fx)
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
func (r *Replica) redrive(req *locate.Request, e *Entry, d deciding) {
	switch asked := req.Ev.Redrive; {
	case !locate.OfDomain(req.Ev, &e.Task):
		d.Conclude(req, locate.NotFound())
	case e.State == taskstate.Waiting && !e.left && r.letters[e.ID].Seq > 0, asksForLetter(req, e):
		r.wait(req, e.left)
	case e.State == taskstate.Dead && asked.Letter == 0 && !e.RedrivenBy(req.Ev):
		d.Conclude(req, locate.DeadLetterComes())
	default:
		locate.ConcludeRedrive(req, &e.Task, d)
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
func (d deciding) Bring(req *locate.Request) {
	task, letter := req.DeadLetter()
	e := &Entry{Task: *task, arrivedAt: req.At}
	e.shared = e.Position.Shared()
	d.live++
	d.tasks[e.ID] = e
	req.Locate()
	did := taskstate.Bring(&e.Task, req.Ev, req.At)
	d.locator.Brought(&e.Task, d, d)
	d.enqueue(e)
	d.letters[e.ID] = letter
	d.carryOut(e, did, d.now, d.fx, true)
	d.fx.Counts.Redriven++
	if e.left { // the tail of the timer store has it
		d.spend(e, d.fx)
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

// isBack reports whether e is a later life of a task that is known as dead: it was redriven, so the end that is known is stored.
func isBack(known, e *Entry) bool {
	return known != nil && known.State == taskstate.Dead && e.Parkings > known.Parkings && e.Redriven().Count > known.Redriven().Count
}

// waitAgain takes the commands of a turn that waited as of the snapshot. The snapshot has seen the others.
func (r *Replica) waitAgain(in *Turn) {
	first := 0
	for _, b := range in.Batches {
		for i := range b.Events {
			if place := first + i; r.replay != nil && r.replay.waiting[EventPlace{Seq: in.Seq, Index: uint32(place)}] {
				r.wait(&locate.Request{Ev: &b.Events[i], Seq: in.Seq, At: in.At, Place: place, Replayed: true}, true)
			}
		}
		first += len(b.Events)
	}
}

// Waiting tells whether more commands may come.
func (r *Replica) Waiting() Waiting { return r.locator.Waiting() }
