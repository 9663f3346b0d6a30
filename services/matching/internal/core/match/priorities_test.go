package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// started has workers of tasklists take one task after another, n in all, and counts what of each priority they started.
func started(w *world, n int, all []*task, lists ...string) (byPriority [7]int) {
	seen := map[*task]bool{}
	for i := range n {
		for _, list := range lists {
			w.poll(fmt.Sprint(list, i, w.count), Poll{Domain: "d", Tasklist: list, Max: 1, For: time.Hour})
		}
		w.run(20 * ms)
		for _, t := range all {
			if t.state == "running" && !seen[t] {
				seen[t] = true
				byPriority[t.priority]++
				w.finish(t)
			}
		}
		w.run(20 * ms)
	}
	return byPriority
}

// mixed is a world with tasks of some priorities ready in one tasklist, n of each.
func mixed(t *testing.T, n int, priorities ...int) (w *world, all []*task) {
	w, _ = begun(t, 1)
	w.ends = false
	for _, p := range priorities {
		all = append(all, w.ready("d", "l0", "a", p, n)...)
	}
	w.run(time.Second)
	return w, all
}

// In a cycle of 31 turns each priority comes twice as often as the next one.
func TestPrioritiesTakeTurnsByWeight(t *testing.T) {
	w, all := mixed(t, 100, 1, 2, 3, 4, 5)
	testkit.Equal(t, "started", started(w, 2*31, all, "l0"), [7]int{0, 32, 16, 8, 4, 2})
}

// A priority that is alone has every turn, and so have those that are left.
func TestNoTurnOfAPriorityIsLost(t *testing.T) {
	w, all := mixed(t, 20, 5)
	testkit.Equal(t, "alone", started(w, 10, all, "l0"), [7]int{5: 10})
	urgent := w.ready("d", "l0", "a", 1, 3)
	w.run(time.Second)
	got := started(w, 10, append(urgent, all...), "l0")
	testkit.Equal(t, "beside three urgent ones", got[1:6], []int{3, 0, 0, 0, 7})
}

func TestStrictPrioritiesLetOthersWait(t *testing.T) {
	w, all := mixed(t, 60, 1, 5)
	w.strict = map[string]bool{"l0": true}
	testkit.Equal(t, "started", started(w, 62, all, "l0"), [7]int{1: 60, 5: 2})
}

// Two tasklists share a limit that is always full: the flood of the urgent one leaves the other its turns.
func TestTasklistsBehindAFullLimitTakeTurnsByPriority(t *testing.T) {
	w, _ := limited(t, 1, 1)
	w.ends = false
	all := append(w.ready("d", "urgent", "a", 1, 100), w.ready("d", "later", "a", 5, 100)...)
	for _, list := range []string{"urgent", "later"} {
		w.poll("first "+list, Poll{Domain: "d", Tasklist: list, Max: 1, For: time.Hour})
	}
	got := started(w, 68, all, "urgent", "later")
	if got[1] < 4*got[5] || got[5] < 3 {
		t.Errorf("%d urgent ones were started, and %d of the others", got[1], got[5])
	}
}

// A shard knows not what triggers others have. One whose triggers wait behind more urgent ones of another gets a slot in time.
func TestAShardDoesNotWaitForEverBehindMoreUrgentOnes(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.limits["d/a"] = 1
	w.ends = false
	w.own(0, 1)
	w.own(1, 1)
	later := w.ready("d", "l1", "a", 5, 3)
	urgent := w.ready("d", "l0", "a", 1, 400)
	got := started(w, 400, append(later, urgent...), "l0", "l1")
	if got[5] < 1 || got[1] < 50*got[5] {
		t.Errorf("%d urgent ones were started, and %d of the others", got[1], got[5])
	}
}

// What groups of weight 0 have starts when nothing else is ready, of any priority.
func TestIdleGroupsHaveNoTurn(t *testing.T) {
	w, _ := begun(t, 1)
	w.ends = false
	w.weights = map[string]float64{"idle": 0}
	idle := w.grouped("idle", "l0", "a", 5)
	w.group = func() string { return "" }
	all := append(w.ready("d", "l0", "a", 1, 40), w.ready("d", "l0", "a", 5, 2)...)
	w.run(time.Second)
	all = append(all, idle...)
	for _, t := range idle {
		t.priority = 6 // here only: to count them
	}
	testkit.Equal(t, "beside others", started(w, 42, all, "l0"), [7]int{1: 40, 5: 2})
	testkit.Equal(t, "at last", started(w, 5, all, "l0"), [7]int{6: 5})
}
