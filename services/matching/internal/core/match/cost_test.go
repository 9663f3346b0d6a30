package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// costly is a world of some shards that know a rate of domain d, of bursts of 10.
func costly(t *testing.T, shards int, everyUS float64) *world {
	w := newWorld(t, shards, 2)
	w.rates = map[string]table.Rate{"d": {EveryUS: everyUS, Burst: 10}}
	for shard := range shards {
		w.own(shard, 1)
	}
	for i := range 4 {
		w.poll(fmt.Sprint("opens", i), waiting.Poll{Domain: "d", Tasklist: fmt.Sprint("l", i), Max: 1})
	}
	w.run(300 * ms)
	return w
}

// readyCosting makes n tasks of a type that cost so much.
func (w *world) readyCosting(list, typ string, cost, n int) {
	w.cost = func() int { return table.Cost(cost) }
	w.ready("d", list, typ, 3, n)
}

// begunOf counts the tasks of a type that have started.
func (w *world) begunOf(typ string) int {
	n := 0
	for _, t := range w.tasks {
		if t.typ == typ && t.version > 0 {
			n++
		}
	}
	return n
}

// What costs many starts gets them, however many cheap tasks of another tasklist come all the time, of the same shard or of another one.
func TestACostlyTaskIsNotStarved(t *testing.T) {
	for name, cheap := range map[string]string{"one shard": "l2", "another shard": "l1"} {
		t.Run(name, func(t *testing.T) {
			w := costly(t, 2, 10_000)
			w.readyCosting(cheap, "b", 1, 1000)
			w.keepPolling(100*ms, cheap)
			w.readyCosting("l0", "a", 8, 5)
			calls := len(w.calls)
			for i := range 200 {
				w.keepPolling(5*ms, "l0")
				w.keepPolling(5*ms, cheap)
				if dear := w.begunOf("a"); i == 60 && cheap == "l1" && dear != 5 { // shards take turns: eight starts, one, eight
					t.Errorf("%d costly tasks have started in 0.7 s", dear)
				}
			}
			dear, others := w.begunOf("a"), w.begunOf("b")
			if dear != 5 || others < 40 || 8*dear+others < 200 {
				t.Errorf("%d costly and %d cheap tasks have started in 2.1 s", dear, others)
			}
			if n := len(w.calls) - calls; n > 600 {
				t.Errorf("%d calls", n)
			}
			w.checkRates()
		})
	}
}

// A shard that waits for many starts knows when they are there: meanwhile it only keeps its place in the line.
func TestACostlyTaskIsNotTriedInVain(t *testing.T) {
	w := costly(t, 1, 30e6)
	w.readyCosting("l0", "a", 9, 2)
	w.poll("first", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Minute})
	w.run(100 * ms)
	for i := range 8 {
		w.poll(fmt.Sprint("p", i), waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: 6 * time.Minute})
	}
	calls := len(w.calls)
	w.run(239 * time.Second)
	if n := w.begunOf("a"); n != 1 || len(w.calls)-calls > 300 {
		t.Fatalf("%d have started with one start left, in %d calls", n, len(w.calls)-calls)
	}
	w.run(3 * time.Second)
	testkit.MustEqual(t, "have started when there were eight more", w.begunOf("a"), 2)
	w.checkRates()
}

// A shard without polls any more leaves the line: those behind do not wait for starts that it does not take.
func TestWhoDoesNotPollLeavesTheLine(t *testing.T) {
	w := costly(t, 2, 1e6)
	w.readyCosting("l1", "b", 1, 30)
	w.poll("burst", waiting.Poll{Domain: "d", Tasklist: "l1", Max: 10, For: time.Second})
	w.run(100 * ms)
	w.readyCosting("l0", "a", 10, 1)
	w.poll("gone", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: 1500 * ms})
	w.run(500 * ms)
	before := w.begunOf("b")
	for i := range 8 {
		w.poll(fmt.Sprint("p", i), waiting.Poll{Domain: "d", Tasklist: "l1", Max: 1, For: time.Minute})
	}
	w.run(700 * ms)
	if n := w.begunOf("b"); n != before {
		t.Fatalf("%d more have started beside one that waits for ten", n-before)
	}
	w.run(4 * time.Second)
	if n := w.begunOf("b"); n < before+3 {
		t.Fatalf("%d more have started after it was gone", n-before)
	}
	w.checkRates()
}

// I11: turns count costs: a group whose tasks cost ten times as much starts a tenth as many.
func TestI11_TurnsCountCosts(t *testing.T) {
	f := newFair(t)
	f.cost = func() int {
		if f.next == "dear" {
			return 10
		}
		return 0
	}
	f.ready("dear", 300)
	f.ready("cheap", 300)
	got := f.take(110, 1)
	if n := count(got, "dear"); n < 7 || n > 20 { // the first eight of a chunk may be taken together
		t.Errorf("%d of %d are of the costly group", n, len(got))
	}
	f.ready("dear", 20)
	if got := f.take(110, 1); count(got, "dear") < 7 || count(got, "dear") > 14 {
		t.Errorf("then %d of %d", count(got, "dear"), len(got))
	}
}

// Tasklists take turns for the starts of a rate: one whose polls take all that there is goes behind the others.
func TestTasklistsTakeTurnsForARate(t *testing.T) {
	w := costly(t, 2, 10_000)
	w.readyCosting("l2", "b", 1, 1000)
	w.keepPolling(100*ms, "l2")
	w.readyCosting("l0", "a", 1, 1000)
	for range 100 {
		w.keepPolling(5*ms, "l0")
		w.keepPolling(5*ms, "l2")
	}
	if a := w.begunOf("a"); a < 30 || a > 80 {
		t.Errorf("%d of the second tasklist have started in 1 s", a)
	}
	w.checkRates()
}
