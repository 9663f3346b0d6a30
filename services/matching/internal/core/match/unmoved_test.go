package match

import (
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A poll goes up to the parent of its partition, and no frontend takes it. It is answered empty, so its worker polls again; also by an owner that has
// given its shard up.
func TestAPollThatNoFrontendTookIsAnsweredEmpty(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		o := alone(t, 1)
		in := o.poll(1, time.Minute)
		in.Polls[0].ID, in.Polls[0].Partition = 7, 1
		o.step(0, in)
		for range 10 {
			if len(o.fx.Moves) == 0 {
				o.step(upAfter, Inputs{})
			}
		}
		testkit.MustEqual(t, "polls that go up", len(o.fx.Moves), 1)
		moves := slices.Clone(o.fx.Moves)
		if leaves {
			o.step(0, Inputs{Drain: true})
			testkit.MustEqual(t, "has left", o.fx.Drained, true)
		}
		o.step(0, Inputs{Unmoved: moves})
		testkit.MustEqual(t, "answers", len(o.fx.Answers), 1)
		got := o.fx.Answers[0]
		testkit.Equal(t, "its inbox", got.ReplyTo, in.Polls[0].ReplyTo)
		testkit.Equal(t, "tasks", len(got.Tasks), 0)
		testkit.Equal(t, "polls that wait", o.s.Census().Polls, 0)
	}
}
