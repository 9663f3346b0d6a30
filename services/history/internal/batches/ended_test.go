package batches

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestKeepersHearOfEnds of tasks of their batches, once for each batch.
func TestKeepersHearOfEnds(t *testing.T) {
	member := func(id string) *taskstate.Task {
		return &taskstate.Task{Domain: "shop", Extra: &taskstate.Extra{Batch: &taskstate.Batch{ID: id, Made: 7}}}
	}
	var e Ended
	parts := topology.Partitioning{History: 3}
	for _, task := range []*taskstate.Task{member("a"), member("a"), {Domain: "shop"}, member("b")} {
		e.Note(task)
	}
	heard := map[string]int{}
	publish := func(subject string, data []byte) {
		var hint logv1.BatchHint
		testkit.NoError(t, hint.UnmarshalVT(data))
		for _, ref := range hint.Batches {
			if subject != topology.HintBatch(topology.BatchPartition(ref.Domain, ref.BatchId, parts)) || ref.MadeMs != 7 {
				t.Errorf("%v goes to %s", ref, subject)
			}
			heard[ref.BatchId]++
		}
	}
	e.Hint(parts, publish)
	e.Hint(parts, publish) // nothing has ended since
	if len(heard) != 2 || heard["a"] != 1 || heard["b"] != 1 {
		t.Errorf("heard %v", heard)
	}
}
