package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// grouped makes n tasks of a group.
func (w *world) grouped(group, list, typ string, n int) []*task {
	w.group = func() string { return group }
	return w.ready("d", list, typ, 3, n)
}

// runsOf counts the attempts of a group.
func (w *world) runsOf(group string) int {
	n := 0
	for _, t := range w.tasks {
		if t.state == "running" && t.group == group {
			n++
		}
	}
	return n
}

// expectRuns lets time pass, and then so many run of each group.
func (w *world) expectRuns(what string, d time.Duration, want map[string]int) {
	w.t.Helper()
	w.run(d)
	for group, n := range want {
		if got := w.runsOf(group); got != n {
			w.t.Fatalf("%s: of %s %d run, want %d", what, group, got, n)
		}
	}
}

func (w *world) limitsChanged() {
	for _, o := range w.owners {
		o.give(func(in *Inputs) { in.Limits = append(in.Limits, "d") })
	}
}

// newGroups is a world with two shards, of tasks that end by hand, and many polls.
func newGroups(t *testing.T) *world {
	w := newWorld(t, 2, 2)
	w.ends, w.lease = false, time.Hour
	w.own(0, 1)
	w.own(1, 1)
	for i := range 40 {
		w.poll(string(rune('a'+i%26))+string(rune('a'+i/26)), waiting.Poll{Domain: "d", Tasklist: []string{"l0", "l1"}[i%2], Max: 5, For: time.Hour})
	}
	return w
}

// I8: each group has its slots, of all shards together; one that is full holds up no other.
func TestI8_EachGroupHasItsSlots(t *testing.T) {
	w := newGroups(t)
	w.limits["d/a*"], w.groupLimits = 2, map[string]int{"own": 3}
	w.limitsChanged()
	w.run(time.Second)
	for _, group := range []string{"acme", "own", "", "zeta"} {
		w.grouped(group, "l0", "a", 6)
		w.grouped(group, "l1", "a", 6)
	}
	w.expectRuns("at once", time.Second, map[string]int{"acme": 2, "zeta": 2, "own": 3, "": 12})
	for i := range 8 {
		for _, one := range w.sorted() {
			if one.state == "running" && one.group == "acme" {
				w.finish(one)
				break
			}
		}
		w.expectRuns("when one ends, at once", 100*time.Millisecond, map[string]int{"acme": 2, "zeta": 2})
		if len(w.sorted()) == i {
			t.Fatal("nothing runs")
		}
	}
	w.groupLimits = map[string]int{"acme": 3}
	w.limitsChanged()
	w.expectRuns("with a number of its own", 100*time.Millisecond, map[string]int{"acme": 3, "zeta": 2, "own": 3})
	w.expectRuns("later", 2*time.Minute, map[string]int{"acme": 3, "zeta": 2, "own": 3})
	w.limits["d/a*"] = 4
	w.limitsChanged()
	w.expectRuns("with more for all", 100*time.Millisecond, map[string]int{"acme": 3, "zeta": 4, "own": 4})
	delete(w.limits, "d/a*")
	w.limitsChanged()
	w.expectRuns("without a limit", time.Second, map[string]int{"acme": 4, "zeta": 12, "own": 12})
}

// A limit that comes counts what runs, and holds for what waits in a column of all groups.
func TestALimitPerGroupCountsWhatRunsAndWaits(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.ends, w.lease = false, time.Hour
	w.own(0, 1)
	for _, group := range []string{"acme", "", "zeta"} {
		w.grouped(group, "l0", "a", 3)
	}
	w.poll("first", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 9, For: time.Hour})
	w.expectRuns("before", time.Second, map[string]int{"acme": 3, "zeta": 3, "": 3})
	w.grouped("acme", "l0", "a", 5)
	w.grouped("new", "l0", "a", 5)
	w.run(100 * time.Millisecond) // they are stored
	w.limits["d*"] = 2
	w.limitsChanged()
	w.run(10 * time.Millisecond)
	w.poll("second", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 40, For: time.Hour})
	w.expectRuns("those that wait", 500*time.Millisecond, map[string]int{"acme": 3, "zeta": 3, "new": 2, "": 3})
	for _, one := range w.sorted() {
		if one.group == "acme" && one.state == "running" {
			w.finish(one) // nothing tells of these: nothing was booked
		}
	}
	w.poll("third", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 40, For: time.Hour})
	w.expectRuns("found out", 3*time.Second, map[string]int{"acme": 2, "zeta": 3, "new": 2})
}

// A hundred thousand groups that wait cost nothing while nothing of theirs changes, and each wakes alone.
func TestABlockedGroupCostsNothing(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.ends, w.lease = false, time.Hour
	w.limits["d/a*"] = 1
	w.own(0, 1)
	for i := range 8 {
		w.poll(string(rune('p'+i)), waiting.Poll{Domain: "d", Tasklist: "l0", Max: 100, For: time.Hour})
	}
	const many = 400
	for i := range many {
		w.grouped(string(rune('a'+i%20))+string(rune('a'+i/20)), "l0", "a", 2)
	}
	w.run(2 * time.Second)
	testkit.MustEqual(t, "run", w.grantedN, many)
	for i := range 4 {
		w.poll(string(rune('a'+i)), waiting.Poll{Domain: "d", Tasklist: "l0", Max: 100, For: time.Hour})
	}
	w.run(time.Second)
	calls := len(w.calls)
	w.run(20 * time.Second)
	if more := len(w.calls) - calls; more > 0 {
		t.Errorf("%d calls while all wait", more)
	}
	w.finish(w.sorted()[0])
	w.run(100 * time.Millisecond)
	candidates := 0
	for _, c := range w.calls[calls:] {
		for _, want := range c.Wants {
			candidates += len(want.Candidates)
		}
	}
	if w.grantedN != many+1 || candidates > 2 {
		t.Errorf("%d run, %d columns were looked at", w.grantedN-many, candidates)
	}
}

// Groups that have columns of their own take turns by their weights, as in one column.
func TestI11_GroupsWithALimitTakeTurns(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.limits["d/a*"], w.weights = 1000, map[string]float64{"large": 3}
	w.own(0, 1)
	for _, group := range []string{"flood", "large"} {
		w.grouped(group, "l0", "a", 900)
	}
	w.run(time.Second)
	w.grouped("small", "l0", "a", 3)
	w.ends = false
	w.run(time.Second)
	for i := range 4 {
		w.poll(string(rune('a'+i)), waiting.Poll{Domain: "d", Tasklist: "l0", Max: 100, For: time.Hour})
		w.run(time.Second)
	}
	if small, large, flood := w.runsOf("small"), w.runsOf("large"), w.runsOf("flood"); small != 3 || large < 2*flood || large > 4*flood {
		t.Errorf("of 400 attempts %d are of the small group, %d of the large one, %d of the flood", small, large, flood)
	}
}

// The limit of a group that is full is shown, with what waits for it.
func TestAFullGroupIsShown(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.ends, w.lease = false, time.Hour
	w.limits["d/a*"] = 2
	o := w.own(0, 1)
	w.poll("first", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 9, For: time.Hour})
	w.grouped("acme", "l0", "a", 5)
	w.grouped("zeta", "l0", "a", 1)
	w.run(time.Second)
	w.poll("second", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 9, For: time.Hour})
	w.run(time.Second)
	all, left := o.s.LimitsInUse("d", 5, Now{Mono: w.now, MS: epochMS})
	if left != 0 || len(all) != 2 || all[0].Ref != table.TypeRef("a")+"/group/acme" {
		t.Fatalf("%+v", all)
	}
	if u := all[0]; u.Max != 2 || u.Running != 2 || u.Used != 2 || u.Lists != 1 || u.Tasks < 3 || len(u.Holders) != 2 || len(u.Waiters) != 1 || u.Waiters[0].Tasks < 3 || u.FullFor == 0 {
		t.Errorf("%+v", u)
	}
}
