package batch

import (
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// LifeMS is for how long a batch exists at the most, ms (topology.BatchLifeMax).
const LifeMS = 32 * 24 * 3_600_000

// Counts are those of the batches of which a partition has admitted tasks.
type Counts map[Name]Tally

// Tally is how many tasks of a batch were admitted, and how they ended.
type Tally struct {
	Tasks int64
	Ends
}

// Count is that of one batch.
type Count struct {
	Name
	Tally
}

// Admit counts a task of a batch. One that comes back, from the timer store or as a dead letter, was counted before.
func (c Counts) Admit(t *taskstate.Task) {
	if t.Batch() != nil && t.Parkings == 0 {
		tally := c[NameOf(t)]
		tally.Tasks++
		c[NameOf(t)] = tally
	}
}

// End counts the end of a task of a batch, unless the batch is over and forgotten.
func (c Counts) End(t *taskstate.Task) {
	if t.Batch() == nil {
		return
	}
	if tally, counted := c[NameOf(t)]; counted {
		tally.Add(t)
		c[NameOf(t)] = tally
	}
}

// Since forgets the batches that were created before an instant, Unix ms, and returns the others, in any order.
func (c Counts) Since(at int64) []Count {
	all := make([]Count, 0, len(c))
	for name, tally := range c {
		if name.Made < at {
			delete(c, name)
			continue
		}
		all = append(all, Count{name, tally})
	}
	return all
}

// NameOf is the batch of a task, which has one.
func NameOf(t *taskstate.Task) Name {
	b := t.Batch()
	return Name{Domain: t.Domain, ID: b.ID, Made: b.Made}
}
