package replica

import (
	"math"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

func (l *ledger) add(e *Entry, now int64) {
	if l.queue.Len() == 0 {
		l.oldest = now
	}
	l.queue.Add(e.Domain, e, 1)
}

// next hands out a job of up to limit tasks, or nil.
func (l *ledger) next(limit int) []*Entry {
	if l.busy != nil {
		return nil
	}
	l.busy = l.queue.Cut(limit)
	return l.busy
}

// nextWanted hands out a job of up to limit tasks that are wanted, or nil. A job of which none is counts as stored.
func (l *ledger) nextWanted(limit int, wanted func(*Entry) bool) (job []*Entry) {
	for l.busy == nil && l.queue.Len() > 0 {
		job = slices.DeleteFunc(slices.Clone(l.next(limit)), func(e *Entry) bool { return !wanted(e) })
		if len(job) > 0 {
			return job
		}
		l.done(l.last)
	}
	return nil
}

// done takes in that the job under way is stored up to seq, and returns its tasks.
func (l *ledger) done(seq uint64) []*Entry {
	job := l.busy
	l.busy = nil
	l.last = max(l.last, seq)
	return job
}

func (l *ledger) idle() bool { return l.queue.Len() == 0 && l.busy == nil }

// pastMin is how many tasks are known at least after they are forgotten, twice as many at most.
const pastMin = 32768

const over = math.MaxUint32

// add notes that e has left memory.
func (x *pastStays) add(e *Entry) {
	before := e.Parkings
	switch {
	case e.State == taskstate.Dead: // it may be redriven
		before++
	case e.State.Finished():
		before = over
	}
	if x.young == nil || len(x.young) >= pastMin {
		x.young, x.old = map[ids.TaskID]uint32{}, x.young
	}
	x.young[e.ID] = max(x.young[e.ID], x.old[e.ID], before)
}

// knows tells whether this stay of a task is over.
func (x *pastStays) knows(e *Entry) bool {
	before := max(x.young[e.ID], x.old[e.ID])
	return before == over || e.Parkings < before
}

// Ends tells of tasks up to which stay of each the archive has an end: the first stay behind that. One that was redriven has several.
type Ends map[ids.TaskID]uint32

// Add notes a stay that ended.
func (x Ends) Add(s Stay) { x[s.ID] = max(x[s.ID], s.Parkings+1) }

// has tells whether e is among them.
func (x Ends) has(e *Entry) bool { return x[e.ID] > e.Parkings }

// take takes e out, if it is among them, with all of its task.
func (x Ends) take(e *Entry) bool {
	if !x.has(e) {
		return false
	}
	if x[e.ID] == e.Parkings+1 {
		delete(x, e.ID)
	}
	return true
}

// foreign lets go of what another owner has archived. An earlier one had stored the ends before this one claimed the log. An end that
// is not known here was stored by a newer one.
func (s step) foreign(in *Stored) {
	for _, stay := range in.Others {
		switch e := s.tasks[stay.ID]; {
		case e == nil, !e.State.Finished() && e.Parkings <= stay.Parkings:
			s.fx.TakenOver = true
		case e.Parkings <= stay.Parkings:
			s.leave(e)
		}
	}
}

// ParkedTail gathers the stays that the tail of the timer store holds, message by message.
type ParkedTail struct {
	// Stays are those that count.
	Stays map[Stay]bool
	// epoch: what earlier ones wrote is void, or void for all we know. own is the reader's.
	epoch, own uint64
}

// NewParkedTail is the tail of an owner of epoch own, which found a checkpoint with its
// TimerEpoch.
func NewParkedTail(epoch, own uint64) *ParkedTail {
	return &ParkedTail{Stays: make(map[Stay]bool), epoch: epoch, own: own}
}

// Fence takes in a fence.
func (t *ParkedTail) Fence(epoch uint64) { t.epoch = max(t.epoch, min(epoch, t.own)) }

// Counts tells whether what an owner of this epoch wrote here counts.
func (t *ParkedTail) Counts(epoch uint64) bool { return epoch >= t.epoch }
