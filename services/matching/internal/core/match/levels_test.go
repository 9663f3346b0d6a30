package match

import (
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// levels is a world whose only shard knows some limits of domain d, by name.
func levels(t *testing.T, partitions int, limits map[string]int) (*world, *owner) {
	w, o := begun(t, partitions)
	w.ends = false
	w.shared = []string{"d:a,b", "d:a", "d:b,c"}
	w.set(o, limits)
	return w, o
}

// set has the limits of a world be these.
func (w *world) set(o *owner, limits map[string]int) {
	clear(w.limits)
	for name, most := range limits {
		w.limits[name] = most
	}
	w.limitsChanged()
	w.run(100 * ms)
}

// serve has some polls wait at tasklists at any time, for a while.
func (w *world) serve(lists ...string) {
	for range 100 {
		for _, list := range lists {
			w.keepPolling(ms, list)
		}
	}
}

// finishAll ends all attempts.
func (w *world) finishAll() {
	for _, task := range w.sorted() {
		if task.state == "running" {
			w.finish(task)
		}
	}
}

// runs tells how many run of each of some limits' attempts.
func (w *world) runs(names ...string) (all []int) {
	for _, name := range names {
		all = append(all, w.running[name])
	}
	return all
}

// TestI8EachLimitOfAPathHolds: of the domain, a tasklist, a type, and of two types together, whichever is the smallest; and
// the path names all of them.
func TestI8EachLimitOfAPathHolds(t *testing.T) {
	all := map[string]int{"d": 8, "d#l0": 6, "d/a": 5, "d:a,b": 7}
	for name := range all {
		limits := map[string]int{}
		for other, most := range all {
			limits[other] = most
		}
		limits[name] = 2
		w, _ := levels(t, 2, limits)
		w.ready("d", "l0", "a", 1, 10)
		w.serve("l0")
		if w.running["d"] != 2 {
			t.Fatalf("%s is the smallest: %d run", name, w.running["d"])
		}
		for _, task := range w.sorted() {
			if task.state == "running" && !slices.Equal(task.path, []table.Ref{"domain", "shared/x", "tasklist/l0", "type/a"}) {
				t.Fatalf("booked in %v", task.path)
			}
		}
	}
}

// TestALimitHoldsUpOnlyWhatItCovers: others of the tasklist, and the same type elsewhere, go on.
func TestALimitHoldsUpOnlyWhatItCovers(t *testing.T) {
	w, _ := levels(t, 1, map[string]int{"d#l0": 1, "d:a,b": 2})
	for _, list := range []string{"l0", "l1"} {
		for _, typ := range []string{"a", "b", "c"} {
			w.ready("d", list, typ, 1, 3)
		}
	}
	w.serve("l0", "l1")
	if got := w.runs("d#l0", "d:a,b", "d#l1", "d/c"); got[0] != 1 || got[1] != 2 || got[2] < 4 || got[3] < 3 {
		t.Fatalf("in l0, of a and b, in l1, of c run %v", got)
	}
}

// TestASlotOfAnyLevelWakesWhoWaitsForIt: whose limit has become free starts, though all of it waited for another before.
func TestASlotOfAnyLevelWakesWhoWaitsForIt(t *testing.T) {
	w, o := levels(t, 1, map[string]int{"d": 3, "d/a": 1})
	a := w.ready("d", "l0", "a", 1, 2)
	w.ready("d", "l1", "b", 1, 4)
	w.serve("l0", "l1")
	if got := w.runs("d", "d/a"); got[0] != 3 || got[1] != 1 {
		t.Fatalf("%v run", got)
	}
	w.finish(a[0])
	w.serve("l0", "l1")
	if got := w.runs("d", "d/a"); got[0] != 3 || got[1] != 1 {
		t.Fatalf("after the end of an a: %v run", got)
	}
	w.finishAll()
	w.serve("l0", "l1")
	w.finishAll()
	w.serve("l0", "l1")
	if w.done() != 6 || w.peak["d"] != 3 || w.peak["d/a"] != 1 {
		t.Fatalf("%d are done, at most %d ran at once, %d of a", w.done(), w.peak["d"], w.peak["d/a"])
	}
	w.run(5 * time.Minute)
	checkEmpty(t, o.s)
}

// TestALimitThatCoversOthersCountsWhatRuns: nothing more begins until it is known what runs of them, and what it does not cover
// any more holds no slot.
func TestALimitThatCoversOthersCountsWhatRuns(t *testing.T) {
	w, o := levels(t, 2, map[string]int{"d:a": 3})
	w.ready("d", "l0", "a", 1, 2)
	w.ready("d", "l0", "b", 1, 2)
	w.serve("l0")
	w.ready("d", "l0", "a", 1, 4)
	w.ready("d", "l0", "b", 1, 4)
	w.partitions[1].silent = true // it does not tell what runs
	w.set(o, map[string]int{"d:a,b": 5})
	w.serve("l0")
	if got := w.runs("d/a", "d/b"); got[0] != 2 || got[1] != 2 {
		t.Fatalf("%v run before all is known", got)
	}
	w.speak(1)
	w.run(time.Second)
	w.serve("l0")
	testkit.MustEqual(t, "run of both", w.running["d:a,b"], 5)
	if c := o.s.Census(); c.Slots != 5 || c.Unbooked != 2 {
		t.Fatalf("%d are counted, %d of them without a slot", c.Slots, c.Unbooked)
	}
	w.set(o, map[string]int{"d:b,c": 5})
	w.run(time.Second)
	w.serve("l0")
	b := w.running["d/b"]
	if n := o.s.Census().Slots; n != b || w.tables.Slots("d", []table.Ref{"shared/x"}, epochMS+w.now.Milliseconds())[0] != b {
		t.Fatalf("%d are counted of %d", n, b)
	}
	if len(w.drops) != 0 {
		t.Fatalf("slots of other shards were dropped: %+v", w.drops)
	}
}

// TestWhatIsReadAheadGoesBackForAnotherLimit: the limit that cut a chunk has a slot, the other one of its path has none: the tables
// have the rest again, and it waits for that one.
func TestWhatIsReadAheadGoesBackForAnotherLimit(t *testing.T) {
	w, o := levels(t, 1, map[string]int{"d/a": 2, "d": 5})
	a := w.ready("d", "l0", "a", 3, 20)
	w.serve("l0")
	if n := o.s.ahead(); n != 18 {
		t.Fatalf("%d triggers are read ahead", n)
	}
	w.ready("d", "l1", "b", 1, 10)
	w.serve("l1")
	if got := w.runs("d", "d/a"); got[0] != 5 || got[1] != 2 {
		t.Fatalf("%v run", got)
	}
	w.finish(a[0])
	w.serve("l0", "l1")
	if got := w.runs("d", "d/a"); got[0] != 5 || w.peak["d"] != 5 {
		t.Fatalf("%v run, at most %d", got, w.peak["d"])
	}
	w.finish(a[1])
	for range 30 {
		w.finishAll()
		w.serve("l0", "l1")
	}
	if w.done() != 30 || w.peak["d"] != 5 || w.peak["d/a"] != 2 {
		t.Fatalf("%d are done; at most %d, of a %d", w.done(), w.peak["d"], w.peak["d/a"])
	}
}

// TestALimitThatGoesLeavesNoWaiterBehind: also not one whose triggers a call under way asks for, whatever becomes of that.
func TestALimitThatGoesLeavesNoWaiterBehind(t *testing.T) {
	w, o := levels(t, 1, map[string]int{"d/a": 1})
	w.ready("d", "l0", "a", 1, 4)
	w.ready("d", "l1", "a", 1, 4)
	w.serve("l0", "l1")
	lost := true
	w.lossy = func(*table.Call) (bool, bool) { return lost, !lost }
	w.delay = func() time.Duration { return 20 * ms }
	o.give(func(in *Inputs) { in.Freed = []LimitHint{{"d", []table.Ref{"type/a"}}} }) // it is tried
	w.run(10 * ms)
	if d := o.s.domains["d"]; d.Call == nil || len(d.Call.Tried) == 0 {
		t.Fatal("no one is tried")
	}
	clear(w.limits)
	w.limitsChanged()
	w.run(100 * ms)
	lost = false
	w.run(time.Second)
	w.serve("l0", "l1")
	for _, l := range o.s.lists {
		if l.WaitsForSlot() {
			t.Fatalf("%v waits for a limit", l.Tasklist)
		}
	}
	testkit.MustEqual(t, "run", w.running["d"], 8)
}

// TestANewTriggerOvertakesNoWaiter: a slot that comes free is for the tasklist that waits for it, not for a trigger that arrives with
// the news, though there is a slot to spare.
func TestANewTriggerOvertakesNoWaiter(t *testing.T) {
	for _, limits := range []map[string]int{{"d/a": 1}, {"d/a": 9, "d": 1}} {
		w, o := levels(t, 1, limits)
		first := w.ready("d", "l1", "a", 1, 1)
		w.serve("l1")
		waits := w.ready("d", "l0", "a", 1, 1)
		w.serve("l0", "l1")
		if first[0].state != "running" || waits[0].state != "ready" {
			t.Fatalf("%s, %s", first[0].state, waits[0].state)
		}
		late := w.task("d", "l1", "a", 1, 0)
		first[0].state = "done"
		for _, key := range w.covering(first[0]) {
			w.running[key]--
		}
		o.give(func(in *Inputs) { // the limits are shown, so slots to spare may be used
			in.Freed = []LimitHint{{"d", []table.Ref{"domain", "type/a"}}}
		})
		w.run(10 * ms)
		w.hint(0, Hints{
			Releases: []Release{{Domain: "d", Type: "a", Path: first[0].path, Bookings: []byte(ids.Booking(first[0].id, first[0].version))}},
			Triggers: []arrival.Triggers{{
				Tasklist: table.Tasklist{Domain: "d", Name: "l1"}, Column: table.Column{Priority: 1, Type: "a"}, ReadyAt: 1_800_000_000_000_000,
				Packed: ids.AppendTrigger(nil, ids.Trigger{ID: late.id, Version: 1}),
			}},
		})
		w.run(50 * ms)
		if waits[0].state != "running" || late.state != "ready" {
			t.Errorf("%v: who waited is %s, who came late %s", limits, waits[0].state, late.state)
		}
	}
}

// TestAPauseHoldsUpWhatItCovers: a tasklist, or a type, by every way to a poll: through the tables, past them, and out of what was taken
// or read ahead. What runs goes on, others are not concerned, and its end wakes who waits.
func TestAPauseHoldsUpWhatItCovers(t *testing.T) {
	for _, c := range []struct {
		pause       string
		limits      map[string]int
		held, begun []string // names of what waits, and of what runs
	}{
		{"d#l0", nil, []string{"d#l0"}, []string{"d#l1"}},
		{"d/a", nil, []string{"d/a"}, []string{"d/b"}},
		{"d#l0", map[string]int{"d/a": 5, "d": 9}, []string{"d#l0"}, []string{"d#l1"}},
		{"d/a", map[string]int{"d": 3}, []string{"d/a"}, []string{"d/b"}},
	} {
		w, o := levels(t, 2, c.limits)
		w.serve("l0", "l1")
		w.pauses[c.pause] = true
		w.set(o, c.limits)
		for _, list := range []string{"l0", "l1"} {
			w.ready("d", list, "a", 1, 3)
			w.ready("d", list, "b", 1, 3)
		}
		w.serve("l0", "l1")
		w.finishAll()
		w.serve("l0", "l1")
		if held, begun := w.runs(c.held...), w.peak[c.begun[0]]; held[0] != 0 || w.peak[c.held[0]] != 0 || begun == 0 {
			t.Fatalf("%s is paused, limits %v: %v of %v run, at most %d of %v", c.pause, c.limits, held, c.held, begun, c.begun)
		}
		clear(w.pauses)
		w.set(o, c.limits)
		for range 8 {
			w.serve("l0", "l1")
			w.finishAll()
		}
		if w.done() != 12 {
			t.Fatalf("after the pause of %s %d are done", c.pause, w.done())
		}
		if len(w.drops) > 0 {
			t.Fatalf("the end of a pause dropped %v", w.drops)
		}
	}
}

// TestAPauseHoldsUpWhatIsOnItsWay: triggers that a call under way takes, and those that were read ahead, go back.
func TestAPauseHoldsUpWhatIsOnItsWay(t *testing.T) {
	w, o := levels(t, 1, map[string]int{"d/a": 2})
	w.ready("d", "l0", "a", 1, 20)
	w.serve("l0")
	if o.s.ahead() == 0 {
		t.Fatal("nothing is read ahead")
	}
	w.pauses["d/a"] = true
	w.set(o, map[string]int{"d/a": 2})
	w.finishAll()
	w.serve("l0")
	testkit.MustEqual(t, "run", w.running["d"], 0)
	clear(w.pauses)
	w.limitsChanged()
	for !o.s.domains["d"].Calling() || len(w.calls[len(w.calls)-1].Wants) == 0 {
		w.run(ms)
	}
	w.pauses["d/a"] = true
	w.limitsChanged()
	w.serve("l0")
	testkit.MustEqual(t, "run that a call took", w.running["d"], 0)
	clear(w.pauses)
	w.set(o, map[string]int{"d/a": 2})
	for range 15 {
		w.serve("l0")
		w.finishAll()
	}
	if w.done() != 20 || w.peak["d"] != 2 {
		t.Fatalf("%d are done, at most %d ran", w.done(), w.peak["d"])
	}
}

// TestI8AnOwnerThatWasOvertakenSpeaksForNobody: the tables lose their memory, and an owner of before, which goes on in ignorance, opens them
// first. What it would say of its slots, none, is not what its shard uses.
func TestI8AnOwnerThatWasOvertakenSpeaksForNobody(t *testing.T) {
	w := newWorld(t, 2, 2)
	w.limits["d"] = 3
	old := w.own(0, 1)
	w.own(1, 1)
	w.ends = false
	w.ready("d", "l2", "a", 1, 1)
	w.keepPolling(100*ms, "l2")
	w.finishAll()
	w.own(0, 2)
	w.run(100 * ms)
	w.ready("d", "l0", "a", 1, 2)
	w.keepPolling(300*ms, "l0")
	if w.running["d"] != 2 || old.overtaken {
		t.Fatalf("%d run; the owner before knows: %v", w.running["d"], old.overtaken)
	}
	w.tables.Forget()
	old.give(func(in *Inputs) { in.Restore = []LimitHint{{"d", []table.Ref{"domain"}}} })
	w.run(5 * ms)
	w.ready("d", "l1", "b", 1, 9)
	w.keepPolling(3*time.Second, "l1")
	if w.peak["d"] != 3 || w.running["d"] != 3 {
		t.Errorf("%d run, at most %d did", w.running["d"], w.peak["d"])
	}
	if !old.overtaken {
		t.Error("the owner before goes on")
	}
}
