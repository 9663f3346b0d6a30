package batches

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Ended gathers the batches of which tasks have ended, for hints to their keepers. The zero one is ready.
type Ended struct{ names map[batch.Name]bool }

// Note notes the end of a task.
func (e *Ended) Note(t *taskstate.Task) {
	if t.Batch() == nil {
		return
	}
	if e.names == nil {
		e.names = make(map[batch.Name]bool)
	}
	e.names[batch.NameOf(t)] = true
}

// Hint publishes a hint to the keeper of each home with such batches. A hint that is lost costs seconds: keepers look
// anyway.
func (e *Ended) Hint(n topology.Partitioning, publish func(subject string, data []byte)) {
	hints := make(map[int]*logv1.BatchHint)
	for name := range e.names {
		home := topology.BatchPartition(name.Domain, name.ID, n)
		if hints[home] == nil {
			hints[home] = &logv1.BatchHint{}
		}
		hints[home].Batches = append(hints[home].Batches, &logv1.BatchHint_Ref{Domain: name.Domain, BatchId: name.ID, MadeMs: name.Made})
	}
	e.names = nil
	for home, hint := range hints {
		if data, err := hint.MarshalVT(); err == nil {
			publish(topology.HintBatch(home), data)
		}
	}
}
