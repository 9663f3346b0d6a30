package firing_test

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
)

// TestLatenessIsOfEachTask: tasks of one chunk with two due times are reported as two, each with its own lateness,
// and what storing them took is reported once.
func TestLatenessIsOfEachTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now().Truncate(time.Millisecond)
	want := append(w.park(2, now.Add(-time.Hour)), w.park(3, now.Add(-time.Minute))...)
	var mu sync.Mutex
	late, appends := map[time.Duration]int{}, 0
	r := w.own(func(d *firing.Deps) {
		d.Gauges.Fired = func(n int, by time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if by > 30*time.Minute {
				late[time.Hour] += n
			} else {
				late[time.Minute] += n
			}
			if by < time.Minute {
				t.Errorf("late by %v", by)
			}
		}
		d.Gauges.Appended = func(took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			appends++
			if took <= 0 {
				t.Errorf("stored within %v", took)
			}
		}
	})
	w.eachOnce(want)
	r.stop() // what was fired is reported
	if !maps.Equal(late, map[time.Duration]int{time.Hour: 2, time.Minute: 3}) || appends == 0 {
		t.Errorf("%v, %d appends", late, appends)
	}
}
