package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// What is without use is idle since it was first found so, and in use again at once.
func TestIdle(t *testing.T) {
	var i idle
	for _, c := range []struct {
		inUse bool
		now   time.Duration
		want  bool
	}{{true, 1, false}, {false, 2, false}, {false, 11, false}, {false, 12, true}, {true, 13, false}, {false, 20, false}, {false, 30, true}} {
		testkit.Equal(t, c.now.String(), i.after(c.inUse, c.now, 10), c.want)
	}
	testkit.Equal(t, "at once", new(idle).after(false, 5, 0), true)
}
