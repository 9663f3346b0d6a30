package firing_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestR43_NothingIsFiredIntoAFullLog: what is due waits until the log has room. That is looked for once a second at
// most, however much is parked meanwhile.
func TestR43_NothingIsFiredIntoAFullLog(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	var full atomic.Bool
	full.Store(true)
	var asked, hasty atomic.Int64
	var last time.Time
	want := w.park(3, time.Now().Add(-time.Second))
	r := w.own(func(d *firing.Deps) {
		d.StorageFull = func() string {
			asked.Add(1)
			if time.Since(last) < time.Second {
				hasty.Add(1)
			}
			if last = time.Now(); full.Load() {
				return "full"
			}
			last = time.Time{} // what it has room for is fired at once
			return ""
		}
	})
	testkit.Eventually(t, soon, func() error {
		want = append(want, w.park(1, time.Now().Add(-time.Second))...)
		if n := asked.Load(); n < 6 {
			return fmt.Errorf("asked %d times", n)
		}
		return nil
	})
	if r.fired.Load() > 0 {
		t.Fatal("tasks were fired into a full log")
	}
	if n := hasty.Load(); n > 0 {
		t.Errorf("%d of %d times it looked within a second", n, asked.Load())
	}
	full.Store(false)
	w.eachOnce(want)
}
