package match

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// fair is a world in which tasks have groups, and are taken by polls of one task each.
type fair struct {
	*world
	o      *owner
	next   string
	polled int
}

func newFair(t *testing.T) *fair {
	w, o := begun(t, 2)
	f := &fair{world: w, o: o}
	w.ends = false
	w.group = func() string { return f.next }
	return f
}

// ready makes n tasks of a group, a thousand at a time, and waits until they are filed.
func (f *fair) ready(group string, n int) {
	f.readyOf("b", 3, group, n)
}

func (f *fair) readyOf(typ string, priority int, group string, n int) {
	f.next = group
	for n > 0 {
		f.world.ready("d", "l0", typ, priority, min(n, 1000))
		n -= min(n, 1000)
		f.world.run(5 * ms)
	}
	f.world.run(20 * ms)
}

// take has so many polls of some tasks each answered, one after the other, and returns the groups that they got, in
// order: "type/group" for types other than b.
func (f *fair) take(polls, most int) (groups []string) {
	f.t.Helper()
	for range polls {
		f.polled++
		before := map[*task]bool{}
		for _, x := range f.tasks {
			before[x] = x.state != "ready"
		}
		f.wait(fmt.Sprint("fair", f.polled), most)
		f.world.run(70 * ms)
		var got []string
		for _, x := range f.sorted() {
			if x.state != "ready" && !before[x] {
				name := x.group
				if x.typ != "b" {
					name = x.typ + "/" + x.group
				}
				got = append(got, name)
			}
		}
		groups = append(groups, got...)
	}
	return groups
}

func count(all []string, one string) int {
	n := 0
	for _, g := range all {
		if g == one {
			n++
		}
	}
	return n
}

// I11: a group that floods holds up another one by a few of its tasks, be that one new, or back again.
func TestI11_AGroupWaitsForNoFlood(t *testing.T) {
	f := newFair(t)
	f.ready("flood", 5000)
	f.take(3, 1)
	for range 5 {
		f.ready("small", 1)
		if got := f.take(inOrderMin+2, 1); count(got, "small") != 1 {
			t.Fatalf("%d tasks were started, and none of them is the small group's: %v", len(got), got)
		}
	}
	// What is in the table is known to a new owner, too.
	f.kill(0)
	f.own(0, 2)
	f.world.run(3 * time.Second)
	f.ready("small", 3)
	if got := f.take(5*inOrderMin, 1); count(got, "small") != 3 {
		t.Fatalf("with a new owner: %v", got)
	}
}

// I11: what was put aside, since its partition of history was silent, comes back with its old rank. It holds up a group that comes
// meanwhile, or afterwards, no more than what was never taken.
func TestI11_WhatWasPutAsideHoldsUpNoGroup(t *testing.T) {
	f := newFair(t)
	f.ready("flood", 5000)
	f.take(3, 1)
	f.partitions[0].silent = true
	f.take(200, 8)
	f.ready("small", 1)
	f.speak(0)
	f.world.run(5 * time.Second)
	f.ready("late", 1)
	if got := f.take(4*inOrderMin, 1); count(got, "small") != 1 || count(got, "late") != 1 {
		t.Fatalf("%d tasks were started: %v", len(got), got)
	}
}

// inOrderMin is that of the table.
const inOrderMin = 8

// I11: while all have work, shares are as the weights.
func TestI11_SharesAreAsTheWeights(t *testing.T) {
	f := newFair(t)
	f.weights = map[string]float64{"one": 0.5, "two": 1, "four": 2}
	for range 5 { // submits of all of them, mixed, and as they come
		f.ready("four", 400)
		f.ready("one", 400)
		f.ready("two", 400)
	}
	got := f.take(100, 14)
	for group, want := range map[string]int{"one": 200, "two": 400, "four": 800} {
		if n := count(got, group); n < want*97/100 || n > want*103/100 {
			t.Errorf("%s got %d of %d, want %d", group, n, len(got), want)
		}
	}
}

// I11: each partition has a virtual time of its own. Where each group has tasks in all of them, and polls take turns, shares over all partitions are as
// the weights, within 5 % of all that starts, also of tasks that come mixed.
func TestI11_SharesOverPartitions(t *testing.T) {
	testkit.Slow(t, "pairs tens of thousands of tasks")
	const parts, each, polls = 4, 1200, 1400
	for name, atOnce := range map[string]int{"mixed": 1, "a few each": 20, "apart": each} {
		f := newFair(t)
		f.spread["l0"] = parts
		f.weights = map[string]float64{"one": 1, "two": 2, "four": 4}
		names, n := []string{"one", "two", "four"}, 0
		f.group = func() string {
			n++
			return names[(n-1)/atOnce%3]
		}
		for range 3 * each / 300 {
			f.world.ready("d", "l0", "b", 3, 300)
			f.world.run(5 * ms)
		}
		f.world.run(20 * ms)
		for i := range polls {
			f.poll(fmt.Sprint("p", i), waiting.Poll{Domain: "d", Tasklist: "l0", Partition: i % parts, Max: 1, For: 30 * time.Second})
			f.world.run(20 * ms)
			if (i+1)%(polls/4) != 0 {
				continue
			}
			got := map[string]int{}
			for _, x := range f.tasks {
				if x.state != "ready" {
					got[x.group]++
				}
			}
			for group, weight := range f.weights {
				if want := int(weight) * (i + 1) / 7; math.Abs(float64(got[group]-want)) > 0.05*float64(i+1) {
					t.Errorf("%s: of the first %d %v", name, i+1, got)
				}
			}
		}
	}
}

// I11: a group of weight 0 runs when nothing else wants to, of whatever priority.
func TestI11_WeightZeroWaitsForAll(t *testing.T) {
	f := newFair(t)
	f.weights = map[string]float64{"idle": 0}
	f.readyOf("b", 1, "idle", 20)
	f.readyOf("c", 5, "", 10)
	f.readyOf("b", 5, "other", 10)
	f.readyOf("b", 3, "", 10)
	if got := f.take(6, 5); count(got, "idle") != 0 || len(got) != 30 {
		t.Fatalf("while others waited: %v", got)
	}
	f.readyOf("b", 5, "other", 1)
	testkit.MustEqual(t, "beside the idle", f.take(1, 1), []string{"other"})
	if got := f.take(20, 1); count(got, "idle") != 20 {
		t.Fatalf("alone: %v", got)
	}
}

// Tasks without a group are one group; a flood of them that was there before there were groups is overtaken, too.
func TestTasksWithoutAGroupAreOne(t *testing.T) {
	testkit.Slow(t, "pairs tens of thousands of tasks")
	f := newFair(t)
	f.ready("", 3000)
	f.ready("a", 1)
	if got := f.take(2*inOrderMin, 1); count(got, "a") != 1 {
		t.Fatalf("%v", got)
	}
	f.take(300, 10) // those came before there were groups, and all at once
	f.ready("", 3000)
	f.ready("a", 5)
	if got := f.take(6*inOrderMin, 1); count(got, "a") != 5 {
		t.Fatalf("with groups: %v", got)
	}
}

// Between types the oldest comes first: neither does a group that overtakes a flood of its own type make that one wait for
// other types, nor does a type with groups get ahead of the others.
func TestTypesWithGroupsTakeTheirTurnByAge(t *testing.T) {
	f := newFair(t)
	f.readyOf("b", 3, "flood", 300)
	f.readyOf("c", 3, "", 300)
	f.readyOf("b", 3, "small", 1)
	if got := f.take(30, 10); count(got, "c/") > 3*128 || count(got, "small") != 1 || count(got, "flood") < 290 {
		t.Fatalf("%d of the other type, %d small, %d of the flood", count(got, "c/"), count(got, "small"), count(got, "flood"))
	}
	f.readyOf("b", 3, "flood", 300)
	if got := f.take(31, 10); count(got, "c/") != 300 {
		t.Fatalf("%d of the other type, which was first", count(got, "c/"))
	}
}

// A hundred thousand groups are filed in as many chunks as one, and are forgotten when nothing of them waits.
func TestGroupsCostWhatOneDoes(t *testing.T) {
	testkit.Slow(t, "pairs tens of thousands of tasks")
	f := newFair(t)
	const n = 20_000
	names := 0
	f.group = func() string { names++; return fmt.Sprint("customer-", names) }
	for range n / 1000 {
		f.world.ready("d", "l0", "b", 3, 1000)
		f.world.run(2 * ms)
	}
	f.world.run(50 * ms)
	chunks := 0
	for _, c := range f.calls {
		chunks += len(c.Put)
	}
	if most := n/table.ChunkTriggersMax + 2*len(f.calls) + n/1000; chunks > most {
		t.Errorf("%d chunks of %d triggers, want %d at most", chunks, n, most)
	}
	l := f.o.s.lists[table.Tasklist{Domain: "d", Name: "l0"}]
	at := table.Column{Priority: 3, Type: "b"}
	if l.source.Ranks.Now(at) == 0 {
		t.Error("groups wait in a column without a virtual time")
	}
	for i := range n / 100 {
		f.wait(fmt.Sprint("all", i), 1000)
		f.world.run(60 * ms)
	}
	if n, now := l.index.Triggers(), l.source.Ranks.Now(at); n != 0 || now != 0 {
		t.Fatalf("%d triggers are left, the virtual time is %d", n, now)
	}
}

// I11: triggers of which some find a poll at once, and the rest is stored, keep their groups.
func TestI11_WhatIsStoredOfAHintKeepsItsGroups(t *testing.T) {
	f := newFair(t)
	f.wait("first", 5)
	f.world.run(20 * ms)
	groups := append(slices.Repeat([]string{"first"}, 5), append(slices.Repeat([]string{"flood"}, 8), "small")...)
	at := 0
	f.group = func() string { at++; return groups[at-1] }
	f.world.ready("d", "l0", "b", 3, len(groups))
	f.world.run(100 * ms)
	if p := f.polls["first"]; p.tasks != 5 || f.counts.SyncMatches != 5 {
		t.Fatalf("%d tasks met the poll that waited, %d without a table", p.tasks, f.counts.SyncMatches)
	}
	if got := f.take(2, 1); count(got, "small") != 1 {
		t.Errorf("then came %v", got)
	}
}
