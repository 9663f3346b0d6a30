package match

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// crowd has polls wait at many tasklists for tasks of a type with a limit, and some tasks of each.
func crowd(w *world, lists, tasks int) []*task {
	w.ends = false
	var all []*task
	for i := range lists {
		name := fmt.Sprint("crowd", i)
		w.poll("at "+name, waiting.Poll{Domain: "d", Tasklist: name, Max: 1, For: time.Hour})
		all = append(all, w.ready("d", name, "a", 3, tasks)...)
	}
	w.run(2 * time.Second)
	return all
}

// running is the tasks that run.
func running(all []*task) []*task {
	return slices.DeleteFunc(slices.Clone(all), func(t *task) bool { return t.state != "running" })
}

// A slot that comes free costs a look at the tasklist that gets it, and at the one that has lost the
// next one, however many tasklists wait.
func TestFreedSlotCostsFewLooks(t *testing.T) {
	for _, lists := range []int{10, 600} {
		w, _ := limited(t, 1, 2)
		all := crowd(w, lists, 1)
		testkit.MustEqual(t, "run, 2 may", len(running(all)), 2)
		for range 8 {
			before := w.counts.Looks
			w.finish(running(all)[0])
			w.run(20 * ms)
			if n := w.counts.Looks - before; n < 1 || n > 3 {
				t.Errorf("with %d tasklists a freed slot cost %d looks", lists, n)
			}
		}
		if done := w.done(); done != 8 || len(running(all)) != 2 {
			t.Errorf("%d are done, %d run", done, len(running(all)))
		}
	}
}

// One turn looks at a part of a domain's tasklists only, and goes on at once; other domains, and other types of
// this one, are served in between.
func TestTurnLooksAtFewTasklists(t *testing.T) {
	w, o := limited(t, 1, 2)
	crowd(w, 3*tablecall.LooksMax, 2)
	w.limits["d/a"] = 3
	w.looksMost = 0
	before := w.counts.Looks
	o.s.domains["d"].MarkAll()
	w.limitsChanged()
	began := w.now
	w.poll("other", waiting.Poll{Domain: "e", Tasklist: "l0", Max: 1, For: time.Minute})
	w.ready("e", "l0", "b", 1, 1)
	w.poll("same", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Minute})
	w.ready("d", "l0", "b", 1, 1)
	w.run(100 * ms)
	if n := w.counts.Looks - before; n < 3*tablecall.LooksMax || w.looksMost > tablecall.LooksMax+1 { // the other domain's
		t.Errorf("%d looks, %d in one turn", n, w.looksMost)
	}
	for _, name := range []string{"other", "same"} {
		if p := w.polls[name]; p.tasks != 1 || p.at-began > 20*ms {
			t.Errorf("%s: after %v %+v", name, p.at-began, p)
		}
	}
	testkit.Equal(t, "run, 3 may", w.running["d/a"], 3)
}

// Many domains together get a part of a turn, too, and none is left out.
func TestTurnLooksAtFewDomains(t *testing.T) {
	w, o := begun(t, 1)
	w.ends = false
	const domains, lists = 8, tablecall.LooksMax
	for d := range domains {
		for l := range lists {
			w.poll(fmt.Sprint(d, " ", l), waiting.Poll{Domain: fmt.Sprint("d", d), Tasklist: fmt.Sprint("l", l), Max: 1, For: time.Hour})
		}
	}
	w.run(time.Second)
	w.looksMost = 0
	before := w.counts.Looks
	o.give(func(*Inputs) {
		for _, d := range o.s.inOrder {
			d.MarkAll()
		}
	})
	w.run(10 * ms)
	if n := w.counts.Looks - before; n != domains*lists || w.looksMost > tablecall.TurnLooksMax {
		t.Errorf("%d looks of %d, %d in one turn", n, domains*lists, w.looksMost)
	}
}

// served finishes what runs, one after the other, and returns the tasklists of what ran then.
func served(w *world, all []*task, n int) (order []string) {
	for range n {
		before := running(all)
		w.finish(before[0])
		w.run(20 * ms)
		for _, t := range running(all) {
			if !slices.Contains(before, t) {
				order = append(order, t.list)
				w.poll(fmt.Sprint("again", w.count), waiting.Poll{Domain: "d", Tasklist: t.list, Max: 1, For: time.Hour})
			}
		}
		w.run(20 * ms)
	}
	return order
}

// Tasklists get the slots of a limit by turns.
func TestTasklistsTakeTurns(t *testing.T) {
	w, _ := limited(t, 1, 1)
	all := crowd(w, 3, 4)
	first := running(all)[0].list
	w.wait("more", 1) // no type of theirs waits here
	w.poll("again", waiting.Poll{Domain: "d", Tasklist: first, Max: 1, For: time.Hour})
	w.run(ms)
	order := served(w, all, 6)
	if len(order) != 6 || order[0] == order[1] || order[1] == order[2] || order[0] == order[2] || !slices.Equal(order[:3], order[3:]) {
		t.Fatalf("after %s they were served in the order %v", first, order)
	}
}

// The tasklist where the most urgent trigger waits gets the next slot, also if it became urgent later.
func TestUrgentTasklistIsFirst(t *testing.T) {
	w, _ := limited(t, 1, 1)
	all := crowd(w, 5, 2)
	all = append(all, w.ready("d", "crowd3", "a", 1, 1)...)
	w.run(20 * ms)
	testkit.MustEqual(t, "was served", served(w, all, 1), []string{"crowd3"})
}

// A tasklist that is tried in vain, since another shard has the slot, keeps its place.
func TestPlaceIsKeptWhereAnotherShardHasTheSlot(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.limits["d/a"] = 1
	w.ends = false
	w.own(0, 1)
	o := w.own(1, 1)
	w.poll("holder", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Hour})
	held := w.ready("d", "l0", "a", 1, 1)
	w.run(time.Second)
	var tasks []*task
	for _, name := range []string{"x1", "y1", "z1"} {
		w.poll(name, waiting.Poll{Domain: "d", Tasklist: name, Max: 1, For: time.Hour})
		tasks = append(tasks, w.ready("d", name, "a", 3, 1)...)
		w.run(20 * ms)
	}
	w.run(5500 * ms) // it asks every second
	tried := 0
	for _, c := range w.calls {
		if c.Shard == 1 && len(c.Wants) > 0 {
			tried++
		}
	}
	if got := names(o.s.domains["d"].Limits["type/a"]); tried < 5 || !slices.Equal(got, []string{"x1", "y1", "z1"}) {
		t.Fatalf("after %d calls the order is %v", tried, got)
	}
	w.finish(held[0])
	w.run(100 * ms)
	if tasks[0].state != "running" {
		t.Fatal("the first one does not run")
	}
}

// Calls that fail leave the order as it is.
func TestPlaceIsKeptWhereACallFails(t *testing.T) {
	w, o := limited(t, 1, 1)
	all := crowd(w, 4, 1)
	lim := o.s.domains["d"].Limits["type/a"]
	before := names(lim)
	failed := 0
	w.lossy = func(c *table.Call) (bool, bool) {
		lost := len(c.Wants) > 0 && failed == 0
		if lost {
			failed++
		}
		return lost, !lost
	}
	w.finish(running(all)[0])
	w.run(2 * time.Second)
	if got := names(lim); failed != 1 || len(before) != 3 || !slices.Equal(got, before[1:]) {
		t.Fatalf("%d calls failed; %v waited, then %v", failed, before, got)
	}
}

// Who waits for a limit that is lifted waits no longer.
func TestLiftedLimitHasNoWaiters(t *testing.T) {
	w, _ := limited(t, 1, 1)
	all := crowd(w, 20, 1)
	w.limit("d/a", 0)
	w.run(100 * ms)
	testkit.MustEqual(t, "of 20 run", len(running(all)), 20)
}

// Tasklists that have nothing to ask for any more leave the line, and so does their shard.
func TestWaitersWithoutPollsLeave(t *testing.T) {
	w, o := limited(t, 1, 1)
	w.ends = false
	var all []*task
	for i := range tablecall.LooksMax + 10 {
		name := fmt.Sprint("short", i)
		w.poll("at "+name, waiting.Poll{Domain: "d", Tasklist: name, Max: 1, For: time.Second})
		all = append(all, w.ready("d", name, "a", 3, 1)...)
	}
	w.run(500 * ms)
	testkit.MustEqual(t, "wait", len(names(o.s.domains["d"].Limits["type/a"])), len(all)-1)
	w.run(2 * time.Second) // their polls end
	w.finish(running(all)[0])
	w.run(2 * time.Second)
	lim := o.s.domains["d"].Limits["type/a"]
	last := w.calls[len(w.calls)-1]
	if n := len(names(lim)); n != 0 || len(last.Stances) != 1 || last.Stances[0].Wait != 0 {
		t.Fatalf("%d wait; the last call says %+v", n, last.Stances)
	}
}

// names are the tasklists that stand in the line of a limit.
func names(l *limit.Limit) (all []string) {
	for of := range l.InLine() {
		all = append(all, of.Name)
	}
	return all
}
