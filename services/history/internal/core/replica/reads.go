package replica

import (
	"bytes"
	"cmp"
	"iter"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Get is the task as memory has it; nil if it is not there.
func (r *Replica) Get(id ids.TaskID) *taskstate.Task {
	e, ok := r.tasks[id]
	if !ok || e.left && !e.State.Finished() {
		return nil
	}
	return &e.Task
}

// Place is where a ready task stands in the line of its tasklist: by priority, then the one that is ready for longest.
type Place struct {
	Priority int32
	ReadyAt  int64
	ID       ids.TaskID
}

// PlaceOf is the place of a ready task.
func PlaceOf(t *taskstate.Task) Place { return Place{t.Priority, t.ReadyAt, t.ID} }

// Compare is negative where p comes before o.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Priority, o.Priority), cmp.Compare(p.ReadyAt, o.ReadyAt), bytes.Compare(p.ID[:], o.ID[:]))
}

// ArchiveSeq is the last sequence of the archive that this replica knows of.
func (r *Replica) ArchiveSeq() uint64 { return r.archive.last }

// Len is how many tasks are in memory that have not left.
func (r *Replica) Len() int { return r.live }

// storedMin is about how many bytes a task without a payload takes as stored.
const storedMin = 80

// WaitingDomains are those of some domains that have tasks in memory which wait, and what waits: how many tasks, and about how many bytes these take as stored.
func (r *Replica) WaitingDomains(of map[string]bool) iter.Seq2[string, backlog.Amount] {
	return func(yield func(string, backlog.Amount) bool) {
		for domain, tasks := range r.CountWaiting(of) {
			each := storedMin + max(0, r.TaskBytes(domain)-taskstate.FootprintMin)
			if !yield(domain, backlog.Amount{Tasks: tasks, Bytes: tasks * each}) {
				return
			}
		}
	}
}
