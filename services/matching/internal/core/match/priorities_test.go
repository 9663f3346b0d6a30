package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// started has workers of tasklists take one task after another, n in all, and counts what of each priority they started.
func started(w *world, n int, all []*task, lists ...string) (byPriority [7]int) {
	seen := map[*task]bool{}
	for i := range n {
		for _, list := range lists {
			w.poll(fmt.Sprint(list, i, w.count), waiting.Poll{Domain: "d", Tasklist: list, Max: 1, For: time.Hour})
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
		w.poll("first "+list, waiting.Poll{Domain: "d", Tasklist: list, Max: 1, For: time.Hour})
	}
	got := started(w, 68, all, "urgent", "later")
	if got[1] < 4*got[5] || got[5] < 3 {
		t.Errorf("%d urgent ones were started, and %d of the others", got[1], got[5])
	}
}

// A shard knows not what triggers others have. One whose triggers wait behind more urgent ones of another gets a slot in time, of a limit and of
// one that counts per group.
func TestAShardDoesNotWaitForEverBehindMoreUrgentOnes(t *testing.T) {
	for _, key := range []string{"d/a", "d/a*"} {
		w := newWorld(t, 2, 1)
		w.limits[key] = 1
		w.ends, w.lease = false, time.Hour
		w.own(0, 1)
		w.own(1, 1)
		w.limitsChanged()
		w.run(time.Second)
		w.group = func() string { return "g" }
		later, urgent := w.ready("d", "l1", "a", 5, 20), w.ready("d", "l0", "a", 1, 500)
		got := started(w, 500, append(later, urgent...), "l0", "l1")
		if got[5] < 5 || got[1] < 20*got[5] {
			t.Errorf("%s: %d urgent ones were started, and %d of the others", key, got[1], got[5])
		}
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

// freed has one slot after another come free, n in all, while tasks of both tasklists are polled for, and counts what of each priority got them.
func freed(w *world, n int, all []*task, lists ...string) (byPriority [7]int) {
	seen := map[*task]bool{}
	for _, t := range running(all) {
		seen[t] = true
	}
	for i := range n {
		for _, list := range lists {
			w.poll(fmt.Sprint(list, i, w.count), waiting.Poll{Domain: "d", Tasklist: list, Max: 1, For: time.Hour})
		}
		w.run(20 * ms)
		w.finish(running(all)[0])
		w.run(20 * ms)
		for _, t := range running(all) {
			if !seen[t] {
				seen[t] = true
				byPriority[t.priority]++
			}
		}
	}
	return byPriority
}

// A call asks for all that wait, and one slot is free: however many there are, each priority has its turns.
func TestEachSlotOfAFullLimitHasItsTurn(t *testing.T) {
	for _, most := range []int{1, 2, 5, 20} {
		w, _ := limited(t, 1, most)
		w.ends = false
		all := append(w.ready("d", "urgent", "a", 1, 400), w.ready("d", "later", "a", 5, 400)...)
		for i := range most {
			for _, list := range []string{"urgent", "later"} {
				w.poll(fmt.Sprint("first ", list, i), waiting.Poll{Domain: "d", Tasklist: list, Max: 1, For: time.Hour})
			}
		}
		w.run(20 * ms)
		got := freed(w, 102, all, "urgent", "later")
		if got[5] < 4 || got[5] > 8 || got[1]+got[5] != 102 {
			t.Errorf("of %d slots %d were for urgent ones, and %d for the others", most, got[1], got[5])
		}
	}
}

// The partitions of a strict tasklist stand in the lines of a limit by themselves: none takes a turn before what is more urgent.
func TestPartitionsOfAStrictTasklistHaveNoTurns(t *testing.T) {
	for _, shards := range []int{1, 2} {
		w := spreadOver(t, shards, 2)
		w.strict = map[string]bool{"l0": true}
		w.ends, w.lease = false, time.Hour
		w.limit("d/a", 1)
		w.run(200 * ms)
		in := func(partition, priority, n int) (made []*task) {
			for range n {
				one := w.task("d", "l0", "a", priority, len(w.tasks)%len(w.partitions))
				one.part, one.shard = partition, w.shardOf("l0", partition)
				made = append(made, one)
			}
			w.trigger(made...)
			return made
		}
		urgent, later := in(0, 1, 200), in(1, 5, 5)
		w.run(time.Second)
		all := append(urgent[:len(urgent):len(urgent)], later...)
		for i := range 100 {
			w.pollAt(fmt.Sprint("p", i), 0)
			w.pollAt(fmt.Sprint("q", i), 1)
			w.run(20 * ms)
			if now := running(all); len(now) > 0 {
				w.finish(now[0])
			}
			w.run(20 * ms)
		}
		begun := 0
		for _, one := range later {
			if one.version > 0 {
				begun++
			}
		}
		if begun > 1 { // the first slot was free when the only poll of its partition came
			t.Errorf("over %d shards %d were started while more urgent ones were ready", shards, begun)
		}
	}
}

// What waits for all others, and what no worker accepts, costs nothing: a chunk is read ahead as if it were not there.
func TestAnIdleTaskKeepsNoneFromReadingAhead(t *testing.T) {
	w, _ := limited(t, 1, 1)
	w.ends = false
	w.weights = map[string]float64{"idle": 0}
	w.grouped("idle", "l0", "b", 1)
	w.group = func() string { return "" }
	all := w.ready("d", "l0", "a", 3, 200)
	for i := range 200 {
		w.poll(fmt.Sprint("w", i), waiting.Poll{Domain: "d", Tasklist: "l0", Types: []string{"a"}, Max: 1, For: time.Hour})
	}
	w.run(time.Second)
	calls := len(w.calls)
	for range 150 {
		w.finish(running(all)[0])
		w.run(10 * ms)
	}
	if n := len(w.calls) - calls; n > 100 {
		t.Errorf("150 starts took %d calls", n)
	}
}

// Slots of one group are taken by turns, too, within a tasklist and between several.
func TestSlotsOfAGroupHaveTheirTurns(t *testing.T) {
	for _, lists := range [][]string{{"l0"}, {"l0", "l1"}} {
		w := newWorld(t, 1, 1)
		w.ends, w.lease = false, time.Hour
		w.own(0, 1)
		w.limits["d/a*"] = 1
		w.limitsChanged()
		w.run(time.Second)
		w.group = func() string { return "g" }
		all := append(w.ready("d", lists[0], "a", 1, 400), w.ready("d", lists[len(lists)-1], "a", 5, 40)...)
		for _, list := range lists {
			w.poll("first "+list, waiting.Poll{Domain: "d", Tasklist: list, Max: 1, For: time.Hour})
		}
		w.run(100 * ms)
		if got := freed(w, 102, all, lists...); got[5] < 4 || got[5] > 12 {
			t.Errorf("in %v %d urgent ones were started, and %d of the others", lists, got[1], got[5])
		}
	}
}
