package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestALimitInShadowHoldsNothingUp: all run, those beyond are counted, and of other limits nothing changes.
func TestALimitInShadowHoldsNothingUp(t *testing.T) {
	w, o := begun(t, 1)
	w.ends, w.shadow["d/a"], w.shadow["d"] = false, true, true
	w.set(o, map[string]int{"d/a": 2, "d/b": 3, "d": 100})
	w.ready("d", "l0", "a", 3, 10)
	w.ready("d", "l0", "b", 3, 10)
	w.serve("l0")
	testkit.Equal(t, "running", w.runs("d/a", "d/b", "d"), []int{10, 3, 13})
	if u := o.use("type/a"); u.WouldWait != 8 || !u.Shadow || u.Running != 10 || u.FullFor == 0 || u.Lists > 0 {
		t.Errorf("%+v", u)
	}
	if u := o.use("domain"); u.WouldWait != 0 || !u.Shadow || u.FullFor > 0 {
		t.Errorf("%+v", u)
	}
	testkit.Equal(t, "are counted", w.counts.WouldWait, 8)
	if l := o.s.domains["d"].Limits["type/a"]; l.Closed() {
		t.Error("one in shadow is blocked")
	}
	w.run(time.Hour + time.Minute)
	if u := o.use("type/a"); u.WouldWait != 0 {
		t.Errorf("an hour later: %+v", u)
	}
}

// TestATaskIsReadAheadOfTheLimitThatIsFull: not of one in shadow, be it fuller.
func TestATaskIsReadAheadOfTheLimitThatIsFull(t *testing.T) {
	w, o := begun(t, 1)
	w.ends, w.shadow["d"] = false, true
	w.set(o, map[string]int{"d/a": 2, "d": 1})
	w.ready("d", "l0", "a", 3, 10)
	w.serve("l0")
	d := o.s.domains["d"]
	if l := d.Limits["domain"]; l.Closed() {
		t.Error("one in shadow is blocked")
	}
	if o.s.ahead() == 0 {
		t.Error("nothing is ahead")
	}
}

// TestOneCallTakesMoreThanALimitInShadowAllows: what the first tasklist asks of it leaves nothing for a second call.
func TestOneCallTakesMoreThanALimitInShadowAllows(t *testing.T) {
	w, o := begun(t, 1)
	w.ends, w.shadow["d/a"] = false, true
	w.set(o, map[string]int{"d/a": 1})
	for _, list := range []string{"l0", "l1"} {
		w.ready("d", list, "a", 3, 5)
	}
	w.run(100 * ms)
	for _, list := range []string{"l0", "l1"} {
		w.poll("at "+list, waiting.Poll{Domain: "d", Tasklist: list, Max: 5, For: time.Minute})
	}
	before := len(w.calls)
	w.run(ms)
	if n := len(w.calls) - before; n != 1 || len(w.calls[before].Wants) != 2 {
		t.Errorf("%d calls: %+v", n, w.calls[before:])
	}
}

// TestALimitLeavesTheShadow: from then on it holds up, and what runs beyond goes on; and the other way round.
func TestALimitLeavesTheShadow(t *testing.T) {
	w, o := begun(t, 1)
	w.ends, w.shadow["d/a"] = false, true
	w.set(o, map[string]int{"d/a": 2})
	w.ready("d", "l0", "a", 3, 5)
	w.serve("l0")
	w.shadow["d/a"] = false
	w.set(o, map[string]int{"d/a": 2})
	w.ready("d", "l0", "a", 3, 5)
	w.serve("l0")
	testkit.Equal(t, "running", w.runs("d/a"), []int{5})
	w.finishAll()
	w.serve("l0")
	testkit.Equal(t, "running", w.runs("d/a"), []int{2})
	w.shadow["d/a"] = true
	w.set(o, map[string]int{"d/a": 2})
	w.serve("l0")
	testkit.Equal(t, "running", w.runs("d/a"), []int{5})
}

// TestALimitInShadowWaitsForNoCount: an owner that does not know yet what runs lets start what only such a limit covers.
func TestALimitInShadowWaitsForNoCount(t *testing.T) {
	for _, shadow := range []bool{true, false} {
		w, o := begun(t, 2)
		w.ends, w.shadow["d/a"] = false, shadow
		w.partitions[1].silent = true
		w.set(o, map[string]int{"d/a": 2})
		one := w.task("d", "l0", "a", 1, 0)
		w.trigger(one)
		w.wait("p", 1)
		w.run(100 * ms)
		if (one.state == "running") != shadow {
			t.Fatalf("shadow: %v; the task is %s", shadow, one.state)
		}
		if !shadow { // what waits for the count comes into the shadow
			w.shadow["d/a"] = true
			w.set(o, map[string]int{"d/a": 2})
			testkit.Equal(t, "the task", one.state, "running")
		}
	}
}

// TestARateInShadowHoldsNothingUp: what would have come too early is counted, and uses up nothing of the rate.
func TestARateInShadowHoldsNothingUp(t *testing.T) {
	w, o := begun(t, 1)
	w.rates["d/a"], w.shadow["rate d/a"] = table.Rate{EveryUS: 3.6e9, Burst: 5}, true
	w.set(o, nil)
	w.ready("d", "l0", "a", 3, 40)
	w.serve("l0")
	testkit.Equal(t, "begun", w.starts["d/a"], 40)
	if u := o.use("rate/type/a"); u.WouldWait != 35 || !u.Shadow {
		t.Errorf("%+v", u)
	}
	w.shadow["rate d/a"] = false
	w.set(o, nil)
	w.ready("d", "l0", "a", 3, 10)
	w.run(2 * time.Hour) // of the burst nothing is left, and not less than that
	w.serve("l0")
	testkit.Equal(t, "begun", w.starts["d/a"], 42)
}

// checkShadows: a shard stands in no line of a limit in shadow.
func (w *world) checkShadows(c *table.Call) {
	for _, s := range c.Stances {
		if s.Shadow && s.Wait > 0 {
			w.t.Fatalf("it waits for %s, which is in shadow", s.Ref)
		}
	}
}
