package batch

import (
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// LifeMS is for how long a batch exists at the most, ms (topology.BatchLifeMax).
const LifeMS = 32 * 24 * 3_600_000

// Counts is how many tasks of each batch a partition has admitted.
type Counts map[Name]int64

// Count is one of them.
type Count struct {
	Name
	Tasks int64
}

// Admit counts a task of a batch. One that comes back, from the timer store or as a dead letter, was counted before.
func (c Counts) Admit(t *taskstate.Task) {
	if b := t.Batch(); b != nil && t.Parkings == 0 {
		c[NameOf(t)]++
	}
}

// Since forgets the batches that were created before an instant, Unix ms, and returns the others, in any order.
func (c Counts) Since(at int64) []Count {
	all := make([]Count, 0, len(c))
	for name, tasks := range c {
		if name.Made < at {
			delete(c, name)
			continue
		}
		all = append(all, Count{name, tasks})
	}
	return all
}

// NameOf is the batch of a task, which has one.
func NameOf(t *taskstate.Task) Name {
	b := t.Batch()
	return Name{Domain: t.Domain, ID: b.ID, Made: b.Made}
}
