package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// TestNext: ready tasks by priority, then by since when they are ready; what runs or waits for its next attempt is not in the line.
func TestNext(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 5, 2, 3, 7)
	b.now.MS += 10
	b.submit(nil, 1)
	b.submit(func(t *taskstate.Task) { t.Priority = 1 }, 4)
	b.start(2)
	b.start(7)
	b.finish(taskstate.Failed, 7)
	all := func(*taskstate.Task) bool { return true }
	for limit, want := range map[int][]uint64{0: {}, 1: {4}, 3: {4, 3, 5}, 4: {4, 3, 5, 1}, 9: {4, 3, 5, 1}} {
		next, more := b.list(NextToStart("shop", limit, all))
		if len(next) != len(want) || more != (limit < 4) {
			t.Fatalf("%d: %v, more %t", limit, next, more)
		}
		for i, task := range next {
			if task.ID != id(int(want[i])) {
				t.Errorf("%d: at %d is %v, want %v", limit, i, task.ID, id(int(want[i])))
			}
		}
	}
	behind := PlaceOf(b.r.Get(id(3)))
	if next, more := b.list(NextToStart("shop", 9, func(t *taskstate.Task) bool { return PlaceOf(t).Compare(behind) > 0 })); more || len(next) != 2 || next[0].ID != id(5) {
		t.Errorf("behind the second: %v", next)
	}
	b.now.MS = b.r.Get(id(7)).DueAt
	b.step(Tick{})
	if next, _ := b.list(NextToStart("shop", 9, all)); len(next) != 5 || next[4].ID != id(7) {
		t.Errorf("with the one whose wait is over: %v", next)
	}
}
