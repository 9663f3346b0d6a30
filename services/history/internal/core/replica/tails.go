package replica

import (
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

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

// nextArchive begins a job of what no one else has archived.
func (r *Replica) nextArchive(fx *Effects) {
	for r.archive.busy == nil && len(r.archive.queue) > 0 {
		fx.Archive = slices.DeleteFunc(slices.Clone(r.archive.next(r.cfg.JobTasks)), func(e *Entry) bool { return e.left })
		if len(fx.Archive) == 0 {
			fx.Archive = nil
			r.archive.done(r.archive.last, false)
		}
	}
}

// foreign notes what another owner has archived.
func (r *Replica) foreign(in *Stored) {
	for _, stay := range in.Others {
		if r.archivedTail == nil {
			r.archivedTail = make(Ends)
		}
		r.archivedTail.Add(stay)
	}
	if len(in.Others) == 0 {
		return
	}
	r.tailEnds = r.tailEnds.max(in.Ends)
	for _, e := range r.archive.queue {
		if r.archivedTail.take(e) {
			r.leave(e)
		}
	}
}

// dropTails forgets what the tails hold once everything is read that could have sent it. What a
// command waits for stays: the archive may have been asked before another owner put it there.
//
// What a domain that lags has on disk may lie there for days, and until then the checkpoint would not move in the archive.
// But nothing of it is there that was neither granted nor cancelled: a grab that waits makes its queue be read, and a
// cancel keeps its task here. It may have been parked without either.
func (r *Replica) dropTails() {
	if len(r.parkedTail)+len(r.archivedTail) == 0 || r.eventAt < r.tailEnds.Events || len(r.held) > 0 {
		return
	}
	all := true
	for lane, ends := range r.tailEnds.Lanes {
		if !r.passedForGrabs(ids.Lane(lane), ends) {
			return
		}
		all = all && r.passed(ids.Lane(lane), ends, "")
	}
	if all {
		r.parkedTail = nil
	}
	maps.DeleteFunc(r.archivedTail, func(id ids.TaskID, _ uint32) bool {
		_, searching := r.searching[id]
		return !searching && len(r.early.of(id)) == 0
	})
	if len(r.archivedTail) == 0 {
		r.archivedTail = nil
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

// TimerEpoch is the epoch of the last fence up to the TimerSeq of a checkpoint that the owner of epoch
// own saves, which has found foundSeq and foundEpoch. An owner moves the sequence only behind its
// own fence, and no checkpoint of it is saved once there is another one's.
func (cp *Checkpoint) TimerEpoch(own, foundSeq, foundEpoch uint64) uint64 {
	if cp.TimerSeq > foundSeq {
		return own
	}
	return foundEpoch
}

// Fence takes in a fence.
func (t *ParkedTail) Fence(epoch uint64) { t.epoch = max(t.epoch, min(epoch, t.own)) }

// Counts tells whether what an owner of this epoch wrote here counts.
func (t *ParkedTail) Counts(epoch uint64) bool { return epoch >= t.epoch }
