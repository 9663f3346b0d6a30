package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A partition answers all batches but one. A poll that has a grant of another partition does not wait for that one for long: the attempt runs already.
func TestAPollWithAGrantDoesNotWaitForOneVerdictForLong(t *testing.T) {
	o := alone(t, 2, func(c *Config) { c.GrabsInFlight = 4 })
	o.step(0, o.poll(2, time.Minute))
	o.step(0, join(o.hint("b", 0, 1), o.hint("b", 1, 1)))
	testkit.MustEqual(t, "the partition of the first batch", o.fx.Batches[0].Partition, 0)
	began := o.now.Mono
	o.step(0, o.granted(0, 10))
	for o.now.Mono-began < 10*waiting.GrantedWait {
		other := o.poll(1, time.Minute)
		other.Polls[0].ReplyTo = "other"
		o.step(grab.SilentAfter/4, other)
		o.step(0, o.hint("b", 1, 1))
		for i := range o.fx.Batches {
			if b := &o.fx.Batches[i]; b.Partition == 1 && len(b.Grabs) > 0 {
				o.step(grab.SilentAfter/4, o.granted(i, 10))
				break
			}
		}
		for _, a := range o.fx.Answers {
			if a.ReplyTo == "inbox" && len(a.Tasks) == 1 {
				return
			}
		}
	}
	t.Errorf("it is not answered within %v", o.now.Mono-began)
}
