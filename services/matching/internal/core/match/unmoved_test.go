package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A poll goes up to the parent of its partition, and no frontend takes it. It comes back as it was: the attempts that it gets are those of its worker,
// which history has again when the worker is silent.
func TestAPollThatNoFrontendTookHasItsWorker(t *testing.T) {
	o := alone(t, 1)
	in := o.poll(1, time.Minute)
	in.Polls[0].ID, in.Polls[0].Partition, in.Polls[0].Worker, in.Polls[0].WorkerID = 7, 1, "w", "w-1"
	o.unproven = true // it may come back
	o.step(0, in)
	for range 10 {
		if len(o.fx.Moves) == 0 {
			o.step(upAfter, Inputs{})
		}
	}
	testkit.MustEqual(t, "polls that go up", len(o.fx.Moves), 1)
	o.step(0, Inputs{Unmoved: []uint64{7}})
	hint := o.hint("b", 0, 1)
	hint.Hints[0].Triggers[0].Tasklist.Partition = 1
	o.step(0, hint)
	testkit.MustEqual(t, "batches", len(o.fx.Batches), 1)
	ref := o.fx.Batches[0].Polls[0]
	testkit.Equal(t, "its worker", ref.Worker+" "+ref.WorkerID, "w w-1")
}
