package replica

import "github.com/yardmaster-io/yardmaster/contracts/ids"

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

// foreign lets go of what another owner has archived: it had stored the ends before this one claimed the log.
func (r *Replica) foreign(in *Stored) {
	for _, stay := range in.Others {
		if e := r.tasks[stay.ID]; e != nil && e.State.Finished() && e.Parkings <= stay.Parkings {
			r.leave(e)
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
