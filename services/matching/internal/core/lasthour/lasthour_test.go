package lasthour

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestOnlyTheLastHourCounts(t *testing.T) {
	var c Count[uint32]
	testkit.Equal(t, "before anything", c.Sum(time.Hour), int64(0))
	c.Add(30*time.Second, 2)
	c.Add(10*time.Minute, 3)
	testkit.Equal(t, "in the hour", c.Sum(59*time.Minute), int64(5))
	testkit.Equal(t, "the first minute is over", c.Sum(60*time.Minute), int64(3))
	c.Add(5*time.Minute, 100) // longer ago than an hour would be kept, and out of order
	testkit.Equal(t, "what comes late", c.Sum(60*time.Minute), int64(103))
	c.Add(100*time.Hour, 1)
	c.Add(98*time.Hour, 50)
	testkit.Equal(t, "after a rest", c.Sum(100*time.Hour), int64(1))
}

func TestTheLastTimeThatSomethingWasFull(t *testing.T) {
	var u Fullness
	last := func(when string, now, since, until time.Duration) {
		t.Helper()
		gotSince, gotUntil := u.Last(now * time.Second)
		testkit.Equal(t, when+": since", gotSince, since*time.Second)
		testkit.Equal(t, when+": until", gotUntil, until*time.Second)
	}
	last("never", 5, 0, 0)
	u.Saw(10*time.Second, true, time.Minute)
	last("now", 12, 10, 12)
	u.Saw(20*time.Second, true, time.Minute)
	last("still", 25, 10, 25)
	u.Saw(30*time.Second, false, time.Minute)
	last("before", 40, 10, 30)
	u.Saw(50*time.Second, true, time.Second)
	last("for as long as it counts", 90, 50, 51)
}
