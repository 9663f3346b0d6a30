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
