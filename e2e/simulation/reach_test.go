package simulation

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// reachable holds I1.
func (c *checker) reachable(id ids.TaskID) {
	w := c.w
	if w.ended(id) || w.letters[id] != nil || w.waiting.holds(id) {
		return
	}
	for _, m := range w.log {
		if m == nil || m.Purged {
			continue
		}
		for i := range m.Tasks {
			if m.Tasks[i].ID == id {
				return
			}
		}
	}
	ref := &w.checkpoint.Snapshot
	if slices.Contains(historysim.TasksOf(w.snapshots[snapshotName{ref.Epoch, ref.Seq}], ref), id) {
		return
	}
	w.violated("I1: %s is purged and nowhere else", w.name(id))
}
