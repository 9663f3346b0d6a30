package firing_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestR43_NothingIsFiredIntoAFullLog: what is due waits until the log has room.
func TestR43_NothingIsFiredIntoAFullLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var full atomic.Bool
	full.Store(true)
	var asked atomic.Int64
	want := w.park(3, time.Now().Add(-time.Second))
	r := w.own(func(d *firing.Deps) {
		d.StorageFull = func() string {
			asked.Add(1)
			if full.Load() {
				return "full"
			}
			return ""
		}
	})
	testkit.Eventually(t, soon, func() error {
		if n := asked.Load(); n < 6 {
			return fmt.Errorf("asked %d times", n)
		}
		return nil
	})
	if r.fired.Load() > 0 {
		t.Fatal("tasks were fired into a full log")
	}
	full.Store(false)
	w.eachOnce(want)
}
