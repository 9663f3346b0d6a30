package match

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Polls of a frontend that is gone wait with the root until their time is over. A task below does not wait for that: they are tried one after
// the other until one is taken, and who turned out to be gone does not stand before others.
func TestDeadPollsDoNotKeepATaskWaiting(t *testing.T) {
	w := spreadOver(t, 2, 2)
	w.mute = func(inbox string) bool { return strings.HasPrefix(inbox, "dead") }
	for i := range 20 {
		w.pollAt(fmt.Sprint("dead", i), 0)
		w.run(ms)
	}
	w.pollAt("p", 0)
	w.run(20 * ms)
	w.readyAt(1, "a", 1)
	w.run(500 * ms)
	testkit.Equal(t, "a task waits for the polls of a frontend that is gone", w.polls["p"].tasks, 1)
	w.pollAt("q", 0)
	w.run(20 * ms)
	w.readyAt(1, "a", 1)
	w.run(500 * ms)
	testkit.Equal(t, "a poll waits behind those of a frontend that is gone", w.polls["q"].tasks, 1)
}

// A partition that always has a call to its tables under way, for other types, keeps no poll from travelling: not up from it, nor down.
func TestABusyPartitionLetsPollsGo(t *testing.T) {
	for _, busy := range []int{0, 1} {
		t.Run(fmt.Sprint("busy=", busy), func(t *testing.T) {
			w := spreadOver(t, 3, 3)
			w.readyAt(busy, "b", 3000)
			w.run(50 * ms)
			n := 0
			var feed func()
			feed = func() {
				n++
				w.poll(fmt.Sprint("feed", n), waiting.Poll{Domain: "d", Tasklist: "l0", Partition: busy, Max: 2, Types: []string{"b"}, For: 30 * time.Second})
				w.after(ms, feed)
			}
			w.after(0, feed)
			w.run(100 * ms)
			w.pollAt("p", busy, "a")
			w.run(300 * ms)
			if busy > 0 && w.at("p") != 0 {
				t.Errorf("the poll stays in partition %d", busy)
			}
			w.readyAt(2, "a", 1)
			w.run(100 * ms)
			testkit.Equal(t, "the task of another partition waits", w.polls["p"].tasks, 1)
			if w.grantedN < 400 {
				t.Errorf("%d were granted: it was not busy", w.grantedN)
			}
		})
	}
}

// What a partition cannot serve for want of slots, or has polls for, is not counted as what polls are wanted for.
func TestNoMorePollsAreSentThanAreWanted(t *testing.T) {
	w := spreadOver(t, 2, 2)
	w.limits["d/b"], w.ends = 1, false
	w.limitsChanged()
	w.pollAt("b", 1, "b")
	w.pollAt("b2", 1, "b")
	w.readyAt(1, "b", 100)
	w.run(50 * ms)
	for i := range 50 {
		w.pollAt(fmt.Sprint("p", i), 0)
	}
	w.run(200 * ms)
	before := w.moves
	w.readyAt(1, "a", 1)
	w.run(200 * ms)
	if n := w.moves - before; n > 3 {
		t.Errorf("polls moved %d times for one task", n)
	}
	w.run(5 * time.Second)
	if n := w.moves - before; n > 60 {
		t.Errorf("polls moved %d times for one task", n)
	}
}

// Types that no one polls for do not keep a partition from naming one that someone does, however many there are.
func TestTypesWithoutPollersDoNotHideOthers(t *testing.T) {
	w := spreadOver(t, 2, 2)
	for i := range 100 {
		w.readyAt(1, fmt.Sprint("none", i), 1)
	}
	w.run(50 * ms)
	w.pollAt("p", 0, "z")
	w.run(50 * ms)
	w.readyAt(1, "z", 1)
	w.run(15 * time.Second)
	testkit.Equal(t, "the task waits", w.polls["p"].tasks, 1)
}

// Nothing that keeps triggers from being had makes polls go round.
func TestPollsDoNotGoRoundInBadSettings(t *testing.T) {
	const polls, partitions, seconds = 16, 24, 20
	for name, set := range map[string]func(w *world){
		"limits are full":        func(w *world) { w.limits["d/a"], w.limits["d/b"], w.limits["d#l0"], w.ends = 1, 2, 2, false },
		"one limit of all":       func(w *world) { w.limits["d"], w.ends = 1, false },
		"one limit of all, busy": func(w *world) { w.limits["d"] = 1 },
		"rates":                  func(w *world) { w.rates["d/a"], w.rates["d/b"], w.rates["d/c"] = slow(5), slow(2), slow(1) },
		"one rate of all":        func(w *world) { w.rates["d"] = slow(5) },
		"paused types":           func(w *world) { w.limits["d/a"], w.limits["d/b"], w.pauses["d/a"], w.pauses["d/b"] = 1, 1, true, true },
		"groups of weight 0": func(w *world) {
			w.weights = map[string]float64{"g": 0}
			w.group = func() string { return "g" }
		},
		"tables are down": func(w *world) { w.after(time.Second, func() { w.down["d"] = true }) },
		"calls fail": func(w *world) {
			n := 0
			w.lossy = func(*table.Call) (bool, bool) { n++; return n%3 == 0, n%3 > 0 || n%2 == 0 }
			w.limits["d/a"], w.limits["d/b"], w.ends = 1, 2, false
		},
		"a silent partition": func(w *world) { w.partitions[0].silent, w.partitions[1].silent = true, true },
	} {
		t.Run(name, func(t *testing.T) {
			w := spreadOver(t, 3, partitions)
			set(w)
			w.limitsChanged()
			w.run(100 * ms)
			for p := range partitions {
				for _, typ := range []string{"a", "b", "c"} {
					w.readyAt(p, typ, 10)
				}
			}
			for i := range polls {
				w.poll(fmt.Sprint("p", i), waiting.Poll{Domain: "d", Tasklist: "l0", Partition: i % partitions, Max: 1, Types: [][]string{nil, {"a"}, {"b"}}[i%3], For: time.Minute})
			}
			w.run(seconds * time.Second)
			// Each partition is sent one for each type and second where slots are missing, and one for each trigger.
			if most := 2*3*partitions*seconds + 2*int(w.counts.Triggers); w.moves > most {
				t.Errorf("%d polls moved %d times in %d s, at most %d are expected", polls, w.moves, seconds, most)
			}
		})
	}
}

func slow(perSecond float64) table.Rate { return table.Rate{EveryUS: 1e6 / perSecond, Burst: 1} }

// A poll that was given a trigger stays, though its grab is not sent yet: it neither goes up, nor to where it is wanted below.
func TestAPollThatMayBeGrantedATaskStays(t *testing.T) {
	for _, at := range []int{0, 1} {
		w := newWorld(t, 2, 1)
		w.spread["l0"] = 2
		for shard := range 2 {
			w.own(shard, 1)
		}
		w.run(20 * ms)
		w.partitions[0].silent = true
		w.pollAt("flies", at)
		w.readyAt(at, "a", 1)
		w.run(5 * ms)
		w.poll("gathers", waiting.Poll{Domain: "d", Tasklist: "l0", Partition: at, Max: 2, For: 30 * time.Second})
		w.readyAt(at, "a", 1)
		w.run(5 * ms)
		if at == 0 {
			w.readyAt(1, "a", 1)
		}
		w.run(30 * ms)
		if w.moves > 0 {
			t.Errorf("partition %d: %d polls moved", at, w.moves)
		}
		w.speak(0)
		w.run(20 * ms)
		if w.polls["flies"].tasks != 1 || w.polls["gathers"].tasks < 1 && at == 1 || w.counts.HandedBack > 0 {
			t.Errorf("partition %d: the polls got %d and %d tasks", at, w.polls["flies"].tasks, w.polls["gathers"].tasks)
		}
	}
}

// A poll stays for what is asked of the tables for it, and until they are open, however long that takes; and where they do not answer, since
// triggers then meet polls of their own partition only.
func TestAPollStaysForItsOwnTables(t *testing.T) {
	for name, before := range map[string]func(w *world){
		"a slow call": func(*world) {},
		"a new owner": func(w *world) {
			for _, o := range slices.Clone(w.owners) {
				o.dead = true
				w.own(o.shard, 2)
			}
			w.run(200 * ms)
		},
		"down": func(w *world) { w.down["d"] = true; w.readyAt(1, "b", 1); w.run(200 * ms) },
	} {
		t.Run(name, func(t *testing.T) {
			w := spreadOver(t, 2, 2)
			w.readyAt(1, "a", 1)
			w.run(50 * ms)
			w.delay = func() time.Duration { return 8 * ms }
			before(w)
			w.pollAt("p", 1)
			w.run(300 * ms)
			if w.down["d"] {
				w.readyAt(1, "a", 1)
				w.run(100 * ms)
			}
			if w.moves != 0 || w.polls["p"].tasks != 1 {
				t.Errorf("it moved %d times, and got %d tasks", w.moves, w.polls["p"].tasks)
			}
		})
	}
}

// Where the last trigger came long ago, a poll leaves as soon as where none ever came.
func TestAPollLeavesAPartitionThatIsQuietAgain(t *testing.T) {
	w := spreadOver(t, 2, 2)
	w.pollAt("first", 1)
	w.readyAt(1, "a", 1)
	w.run(time.Second)
	w.pollAt("p", 1)
	w.run(30 * ms)
	if at := w.at("p"); at != 0 || w.polls["first"].tasks != 1 {
		t.Errorf("it waits in %d; the first got %d tasks", at, w.polls["first"].tasks)
	}
}
