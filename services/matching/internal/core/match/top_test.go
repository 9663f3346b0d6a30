package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// use is how a limit of domain d is used.
func (o *owner) use(ref table.Ref) limit.InUse {
	o.w.t.Helper()
	all, _ := o.s.LimitsInUse("d", 3, Now{Mono: o.w.now})
	for _, u := range all {
		if u.Ref == ref {
			return u
		}
	}
	o.w.t.Fatalf("%s is not in use: %+v", ref, all)
	return limit.InUse{}
}

// A full limit names those that have its slots for the longest, and the tasklists that wait, with what they hold.
func TestTopNamesHoldersAndWaiters(t *testing.T) {
	w, o := limited(t, 1, 4)
	w.limits["d"], w.limits["d#crowd1"] = 100, 50
	w.limitsChanged()
	w.run(100 * ms)
	w.ends = false
	var held []*task
	for i := range 4 {
		w.wait(fmt.Sprint("p", i), 1)
		held = append(held, w.ready("d", "l0", "a", 2, 1)...)
		w.run(time.Second)
	}
	for i, name := range []string{"crowd0", "crowd1"} {
		w.poll("at "+name, waiting.Poll{Domain: "d", Tasklist: name, Max: 1, For: time.Hour})
		w.ready("d", name, "a", 4-i, 3)
		w.run(10 * time.Second)
	}
	w.ready("d", "crowd0", "other", 5, 7) // that limit does not cover them
	w.run(time.Second)
	u := o.use("type/a")
	if u.Max != 4 || u.Running != 4 || u.Entry != 4 || u.Lists != 2 || u.Tasks != 6 || u.Reclaimed != 0 || len(u.Holders) != 3 {
		t.Errorf("%+v", u)
	}
	for i, h := range u.Holders {
		if h.ID != held[i].id || h.For > w.now-time.Duration(i)*time.Second || h.For < 20*time.Second {
			t.Errorf("holder %d: %+v", i, h)
		}
	}
	if ws := u.Waiters; len(ws) != 2 || ws[0].Tasklist != "crowd0" || ws[0].Priority != 4 || ws[0].Tasks != 3 || ws[0].For < 20*time.Second ||
		ws[1].Tasklist != "crowd1" || ws[1].Priority != 3 || ws[1].For < 10*time.Second || ws[1].For > 12*time.Second {
		t.Errorf("they wait: %+v", ws)
	}
	if u.FullFor < 20*time.Second || u.FullFor > 23*time.Second || u.Full < u.FullFor {
		t.Errorf("full for %v, in all %v of %v", u.FullFor, u.Full, u.Observed)
	}
	if d := o.use("domain"); d.Full != 0 || d.FullFor != 0 || d.Lists != 0 || d.Observed < 24*time.Second {
		t.Errorf("the domain's: %+v", d)
	}
	all, _ := o.s.LimitsInUse("d", 1, Now{Mono: w.now})
	if len(all) != 2 || all[0].Ref != "type/a" || len(all[0].Holders) != 1 || len(all[0].Waiters) != 1 {
		t.Errorf("%+v", all)
	}
	full := o.s.FullLimits(9, Now{Mono: w.now})
	if len(full) != 1 || full[0].Domain != "d" || full[0].Ref != "type/a" || full[0].Lists != 2 || full[0].FullFor != u.FullFor || len(o.s.FullLimits(0, Now{Mono: w.now})) != 0 {
		t.Errorf("tasklists wait for %+v", full)
	}
	if none, _ := o.s.LimitsInUse("e", 1, Now{Mono: w.now}); len(none) != 0 {
		t.Errorf("%+v", none)
	}
}

// Time in which a limit is not full does not count, also if it is in use.
func TestSaturationIsTheTimeInWhichItIsFull(t *testing.T) {
	w, o := limited(t, 1, 2)
	w.ends = false
	began := w.now
	w.wait("p", 2)
	both := w.ready("d", "l0", "a", 2, 2)
	w.run(time.Minute)
	w.finish(both[0])
	w.run(3 * time.Minute)
	u := o.use("type/a")
	if u.Full < 55*time.Second || u.Full > 62*time.Second || u.FullFor != 0 || u.Running != 1 || u.Observed < w.now-began || u.Observed > w.now {
		t.Errorf("one of two slots is in use: %+v", u)
	}
	w.wait("q", 1)
	w.ready("d", "l0", "a", 2, 1)
	w.run(2 * time.Minute)
	if u := o.use("type/a"); u.Full < 170*time.Second || u.Full > 182*time.Second || u.FullFor < 115*time.Second || u.FullFor > 2*time.Minute {
		t.Errorf("both are: %+v", u)
	}
}

// A slot whose release was lost is found by comparing with history, and counted.
func TestReclaimedSlotsAreCounted(t *testing.T) {
	w, o := limited(t, 1, 1)
	w.ends = false
	w.wait("p", 1)
	one := w.ready("d", "l0", "a", 2, 1)
	w.run(time.Second)
	one[0].state, one[0].path = "done", nil // without a word
	w.running["d/a"]--
	w.wait("q", 1)
	w.ready("d", "l0", "a", 2, 1)
	w.run(limit.AuditEvery + 5*time.Second)
	if u := o.use("type/a"); u.Reclaimed != 1 || u.Running != 1 || u.Holders[0].ID == one[0].id {
		t.Errorf("%+v", u)
	}
}

// I14: a domain with as many limits as one answer looks at hides no full limit of another one.
func TestI14_FullLimitsAreFoundBehindALargeDomain(t *testing.T) {
	w, o := limited(t, 1, 1)
	w.ends, w.limits["e/a"] = false, 1
	for _, inbox := range []string{"p", "q"} {
		w.poll(inbox, waiting.Poll{Domain: "e", Tasklist: "l0", Max: 1, For: time.Minute})
		w.ready("e", "l0", "a", 2, 2)
		w.run(10 * time.Second)
	}
	for range limit.Looks {
		(&limit.Limit{Domain: o.s.domains["d"].Domain}).InRing(0, true)
	}
	if full := o.s.FullLimits(9, Now{Mono: w.now}); len(full) != 1 || full[0].Domain != "e" {
		t.Errorf("tasklists wait for %+v", full)
	}
}
