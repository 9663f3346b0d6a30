package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// I7: what others may file on the most urgent lane leaves half of its window to the tasks that belong there,
// in tasks and in bytes; what is unread counts, and what has left gives its room back.
func TestI7_HalfOfTheUrgentWindowIsShared(t *testing.T) {
	cfg := benchConfig()
	cfg.WindowTasks, cfg.WindowBytes = 1000, 1<<20
	r, now, fx := New(cfg, begin(1<<50)), Now{MS: scenarioStart}, new(Effects)
	r.Step(Recovered{}, now, fx)
	check := func(unread, tasks, bytes int64) {
		t.Helper()
		if n, b := r.Shareable(unread); n != tasks || b != bytes {
			t.Errorf("beside %d unread: %d tasks of %d bytes, want %d of %d", unread, n, b, tasks, bytes)
		}
	}
	check(0, 500, 1<<19)
	check(2, 500-2*unreadTasks, 1<<19)
	check(500/unreadTasks, 0, 0)
	r.Step(benchSubmits(1, 100, now), now, fx) // of another lane
	check(0, 500, 1<<19)
	urgent := benchSubmits(2, 300, now)
	urgent.Lane = ids.LaneFirst
	r.Step(urgent, now, fx)
	size := r.rooms[ids.LaneFirst].bytes
	check(0, 200, 1<<19-size)
	more := benchSubmits(3, 200, now)
	more.Lane = ids.LaneFirst
	r.Step(more, now, fx)
	check(0, 0, 0)
	for _, e := range more.Tasks[:50] {
		r.leave(e)
	}
	check(0, 50, 1<<19-r.rooms[ids.LaneFirst].bytes)
	r.cfg.WindowBytes = size
	check(0, 0, 0)
}
