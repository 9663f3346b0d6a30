package doubles

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// packedTask is the trigger of the n-th task.
func packedTask(n int) []byte {
	return ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(n)), Version: 1})
}

// I7: of many grabs about the last Max are remembered, in as much memory.
func TestI7_DoublesAreForgotten(t *testing.T) {
	var d Set
	const grabs = 3 * Max
	for n := range grabs {
		if !d.Add(Print(packedTask(n))) {
			t.Fatalf("the grab of task %d counts as a double", n)
		}
	}
	testkit.Equal(t, "there is room for", len(d.buckets)*bucketPrints, Max)
	last := 0
	for n := grabs - Max/2; n < grabs; n++ {
		if d.Has(Print(packedTask(n))) {
			last++
		}
	}
	if last < Max/2*9/10 {
		t.Errorf("of the last %d only %d are remembered", Max/2, last)
	}
}
