package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// limited is a world whose only shard knows a limit of type a.
func limited(t *testing.T, partitions, most int) (*world, *owner) {
	w, o := begun(t, partitions)
	w.limit("d/a", most)
	w.run(100 * ms)
	if l := o.s.domains["d"].Limits["type/a"]; l == nil || l.Closed() {
		t.Fatalf("the limit stands as %+v", l)
	}
	return w, o
}

// R32, R71 (no quarantine): tables that lost their memory hand out no slot before every shard has reported
// what it holds; then they do, without a wait by the clock.
func TestR32LostSlotsAreRestored(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.limits["d/a"] = 2
	a, b := w.own(0, 1), w.own(1, 1)
	w.ends = false
	w.poll("p", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 5, For: time.Minute})
	held := w.ready("d", "l0", "a", 1, 2)
	w.run(300 * ms)
	testkit.MustEqual(t, "run", w.running["d/a"], 2)
	w.tables.Forget()
	a.dead = true // it cannot tell what it holds
	w.poll("q", waiting.Poll{Domain: "d", Tasklist: "l1", Max: 1, For: time.Minute})
	w.ready("d", "l1", "a", 1, 1)
	w.run(20 * time.Second)
	if w.running["d/a"] != 2 || len(w.restores) < 10 || len(w.restores) > 25 {
		t.Fatalf("%d run; %d times others were asked", w.running["d/a"], len(w.restores))
	}
	began := w.now
	w.own(0, 2)
	w.run(1500 * ms)
	testkit.MustEqual(t, "run", w.running["d/a"], 2)
	w.finish(held[0])
	w.run(300 * ms)
	if p := w.polls["q"]; p.tasks != 1 || w.running["d/a"] != 2 {
		t.Fatalf("after %v the poll has %+v", w.now-began, p)
	}
	_ = b
}

// R38: a limit counts what runs already, though nothing was booked for it; and those leave
// by comparing with history.
func TestR38NewLimitCountsWhatRuns(t *testing.T) {
	w, _ := begun(t, 2)
	running := w.begin(3)
	w.partitions[0].silent = true
	w.wait("undecided", 1)
	late := w.task("d", "l0", "a", 1, 0)
	w.trigger(late) // a grab is under way
	w.run(20 * ms)
	w.limit("d/a", 4)
	w.wait("q", 5)
	w.ready("d", "l0", "a", 1, 5)
	w.run(300 * ms)
	w.speak(0)
	w.run(time.Second)
	if w.running["d/a"] != 4 || late.state != "running" {
		t.Fatalf("%d run, 4 may; the late one is %s", w.running["d/a"], late.state)
	}
	w.run(10 * time.Second)
	w.finish(running[0]) // nothing tells of it
	w.finish(running[1])
	w.run(1500 * ms)
	testkit.MustEqual(t, "run after two have ended, 4 may", w.running["d/a"], 4)
}

// R38: the first limited task of a domain waits for no clock.
func TestR38FreshDomainDoesNotWait(t *testing.T) {
	w, _ := begun(t, 2)
	w.limits["e/a"] = 1
	w.poll("p", waiting.Poll{Domain: "e", Tasklist: "l0", Max: 1, For: time.Minute})
	began := w.now
	w.ready("e", "l0", "a", 1, 1)
	w.run(time.Second)
	if p := w.polls["p"]; p.tasks != 1 || p.at-began > 50*ms {
		t.Fatalf("after %v: %+v", p.at-began, p)
	}
}

// R71 (no second bookings diff): an attempt that ended while history's answer was on its way is
// found a second later.
func TestAttemptThatEndedMeanwhileIsAudited(t *testing.T) {
	w, _ := limited(t, 1, 1)
	old := w.begin(1)
	w.kill(0)
	o := w.own(0, 2)
	slow := true
	w.delay = func() time.Duration {
		if slow {
			return 40 * ms
		}
		return ms
	}
	w.run(200 * ms)   // history has answered that it runs; the answer is on its way
	old[0].path = nil // the owner before took in the release
	w.finish(old[0])
	slow = false
	w.wait("q", 1)
	w.ready("d", "l0", "a", 1, 1)
	w.run(2500 * ms)
	if w.polls["q"].tasks != 1 || w.counts.Audited == 0 {
		t.Fatalf("the poll got %+v, %d slots were found", w.polls["q"], w.counts.Audited)
	}
	_ = o
}

// The release of an attempt may be lost: while its limit is full it is looked for.
func TestLostReleaseIsAudited(t *testing.T) {
	for _, told := range []Inputs{{}, {HintsLost: true}, {ReleasesLost: true}} {
		w, o := limited(t, 1, 1)
		w.ends = false
		w.wait("p", 1)
		w.run(ms)
		one := w.ready("d", "l0", "a", 1, 1)
		w.run(50 * ms)
		one[0].path = nil // no release
		w.finish(one[0])
		w.wait("q", 1)
		w.ready("d", "l0", "a", 1, 1)
		if told.HintsLost || told.ReleasesLost {
			w.run(time.Second)
			o.give(func(in *Inputs) { in.HintsLost, in.ReleasesLost = told.HintsLost, told.ReleasesLost })
			w.run(100 * ms)
		} else {
			w.run(32 * time.Second)
		}
		if w.polls["q"].tasks != 1 || w.counts.Audited != 1 {
			t.Fatalf("reported: %+v: the poll got %+v, %d slots were found", told, w.polls["q"], w.counts.Audited)
		}
		if c := o.s.Census(); c.Slots != 1 {
			t.Fatalf("%d slots are in use", c.Slots)
		}
	}
}

// An audit leaves alone what was granted after it was asked, or is not decided.
func TestAuditSparesWhatIsNew(t *testing.T) {
	w, o := limited(t, 2, 3)
	w.ends = false
	w.wait("p", 1)
	w.run(ms)
	w.trigger(w.task("d", "l0", "a", 1, 1))
	w.run(50 * ms)
	w.delay = func() time.Duration { return 30 * ms }
	o.give(func(in *Inputs) { in.HintsLost = true })
	w.run(40 * ms)
	w.delay = func() time.Duration { return ms }
	w.wait("q", 1)
	w.trigger(w.task("d", "l0", "a", 1, 1))
	w.run(10 * ms)
	w.partitions[0].silent = true
	w.wait("r", 1)
	w.trigger(w.task("d", "l0", "a", 1, 0))
	w.run(500 * ms)
	if c := o.s.Census(); c.Slots != 3 || w.counts.Audited != 0 {
		t.Fatalf("%d slots are in use, %d were found", c.Slots, w.counts.Audited)
	}
}

// R71 (a missing booking is ignored): what was taken without a slot before there was a limit goes
// back, and is granted with one.
func TestTakenWithoutSlotGoesBack(t *testing.T) {
	w, _ := begun(t, 1)
	w.ready("d", "l0", "a", 1, 4)
	w.run(50 * ms)
	w.delay = func() time.Duration { return 20 * ms }
	w.ends = false
	w.wait("p", 4)
	w.run(10 * ms) // the call is under way
	w.limit("d/a", 2)
	w.run(time.Second)
	if w.peak["d/a"] != 2 || w.polls["p"].tasks != 2 {
		t.Fatalf("%d ran at once, 2 may; the poll got %+v", w.peak["d/a"], w.polls["p"])
	}
	for _, b := range w.batches {
		for _, g := range b.Grabs {
			testkit.Equal(t, "a grab names", g.Path, []table.Ref{"type/a"})
		}
	}
}

// R71 (release ignores domain life): a refused grab of an attempt that an owner before was granted
// frees nothing.
func TestRefusedDoubleFreesNothing(t *testing.T) {
	w, _ := limited(t, 1, 2)
	runs := w.begin(1)
	w.kill(0)
	w.own(0, 2)
	runs[0].version-- // its trigger comes once more
	w.trigger(runs...)
	runs[0].version++
	w.run(100 * ms)
	w.wait("q", 5)
	w.run(100 * ms)
	w.ready("d", "l0", "a", 1, 5)
	w.run(5 * time.Second)
	testkit.MustEqual(t, "run, 2 may", w.running["d/a"], 2)
	if w.counts.GrabsRefused > 0 || w.counts.Duplicates == 0 {
		t.Fatalf("%d grabs were refused, %d doubles", w.counts.GrabsRefused, w.counts.Duplicates)
	}
}

// A takeover says nothing about limits until all partitions have reported what runs.
func TestTakeoverWaitsForAllBookings(t *testing.T) {
	w, _ := limited(t, 2, 2)
	held := w.begin(2)
	w.kill(0)
	w.partitions[1].silent = true
	o := w.own(0, 2)
	w.wait("q", 5)
	w.ready("d", "l0", "a", 1, 2)
	w.ready("d", "l0", "b", 1, 2)
	calls := len(w.calls)
	w.run(10 * time.Second)
	for _, c := range w.calls[calls:] {
		if len(c.Stances) > 0 {
			t.Fatalf("it says %+v", c.Stances)
		}
	}
	if w.polls["q"].tasks == 0 || w.running["d/a"] != 2 {
		t.Fatalf("unlimited: %+v; %d run", w.polls["q"], w.running["d/a"])
	}
	w.speak(1)
	w.run(3 * time.Second)
	if l := o.s.domains["d"].Limits["type/a"]; l.Counting() || o.s.Census().Slots != 2 {
		t.Fatalf("it stands as %+v", l)
	}
	w.finish(held[0])
	w.wait("r", 1, "a")
	w.run(2 * time.Second)
	testkit.MustEqual(t, "run, 2 may", w.running["d/a"], 2)
}

// Slots in use are shown once a minute; those that are free are reported soon, and a limit that is no
// more is dropped.
func TestEntriesAreKeptFresh(t *testing.T) {
	w, o := limited(t, 1, 5)
	made := w.begin(2)
	o.give(func(in *Inputs) { in.Restore = []LimitHint{{"d", []table.Ref{"type/a"}}} })
	w.run(100 * ms)
	calls := len(w.calls)
	w.run(130 * time.Second)
	if n := len(w.calls) - calls; n < 2 || n > 4 {
		t.Errorf("it was shown %d times in 130 s", n)
	}
	if first := w.calls[calls-1].Stances[0]; first.TTL <= 0 || first.TTL > time.Minute {
		t.Errorf("its slots may be used for %v", first.TTL)
	}
	last := w.calls[len(w.calls)-1].Stances[0]
	if last.Held != 2 || last.Max != 5 || last.Wait != 0 {
		t.Errorf("it was shown as %+v", last)
	}
	w.finish(made[0])
	w.run(100 * ms)
	if last = w.calls[len(w.calls)-1].Stances[0]; last.Held != 1 {
		t.Errorf("after one has ended it was shown as %+v", last)
	}
	w.limit("d/a", 7)
	w.limit("d/a", 0)
	w.run(100 * ms)
	if len(w.drops) != 1 || o.s.domains["d"].Limits["type/a"] != nil {
		t.Errorf("dropped: %+v", w.drops)
	}
	w.finish(made[1]) // its release names a limit that is no more
	w.wait("q", 9)
	w.ready("d", "l0", "a", 1, 9)
	w.run(100 * ms)
	if w.polls["q"].tasks != 9 {
		t.Errorf("without a limit the poll got %+v", w.polls["q"])
	}
}

// A hint to restore reaches shards that know nothing of the domain.
func TestRestoreOfUnknownDomain(t *testing.T) {
	w, o := begun(t, 1)
	w.limits["e/a"] = 1
	o.give(func(in *Inputs) {
		in.Restore = []LimitHint{{"e", []table.Ref{"type/a", "type/gone"}}, {"f", []table.Ref{"type/a"}}}
		in.Freed = []LimitHint{{"e", []table.Ref{"type/a"}}, {"g", nil}}
	})
	w.run(100 * ms)
	if n := len(w.calls); n == 0 || w.calls[n-1].Domain != "e" || w.calls[n-1].Stances[0].Held != 0 {
		t.Fatalf("calls: %+v", w.calls)
	}
	if o.s.domains["f"] != nil {
		t.Error("a domain without limits was opened")
	}
}

// What an owner before had booked, and no one uses any more, is reported to the tables, though no
// attempt runs: by a release that comes late.
func TestLateReleaseLowersAnEntry(t *testing.T) {
	w, _ := limited(t, 1, 1)
	one := w.begin(1)
	w.kill(0)
	w.finish(one[0])
	w.run(50 * ms)
	w.own(0, 2)
	w.run(6 * time.Second)
	if n := w.tables.Slots("d", []table.Ref{"type/a"}, epochMS+w.now.Milliseconds()); n[0] != 0 {
		t.Fatalf("%d slots are in use", n[0])
	}
	if len(w.asked) == 0 {
		t.Fatal(fmt.Sprint(w.asked))
	}
}

// I8: an attempt that runs keeps its slot when a second grab of it is refused, whichever of the two was
// counted first.
func TestI8RefusedDoubleFreesNoSlot(t *testing.T) {
	w, _ := begun(t, 1)
	w.ends = false
	w.wait("p", 1)
	w.run(ms)
	w.ready("d", "l0", "a", 1, 1)
	w.run(time.Second)
	w.kill(0)
	w.own(0, 2)
	w.wait("q", 1)
	w.run(300 * ms)
	again := *w.sorted()[0]
	again.version--
	w.delay = func() time.Duration { return 50 * ms } // of the grab
	w.trigger(&again)
	w.run(51 * ms)
	w.delay = func() time.Duration { return ms }
	w.limit("d/a", 1)
	w.ready("d", "l0", "a", 1, 1)
	w.run(20 * time.Second)
	if w.counts.GrabsRefused != 1 || w.running["d/a"] != 1 {
		t.Fatalf("%d grabs were refused; %d run, 1 may", w.counts.GrabsRefused, w.running["d/a"])
	}
}

// A limit that is removed and set again, however often, leaves no questions behind.
func TestRemovedLimitsAreNotAskedFor(t *testing.T) {
	w, o := begun(t, 2)
	w.partitions[1].silent = true
	for i := range 201 {
		w.limit("d/a", (i+1)%2)
		w.run(ms)
		if n := o.s.questions.Len(); n > 4 {
			t.Fatalf("%d questions are not answered", n)
		}
	}
	w.speak(1)
	w.run(3 * time.Second)
	if l := o.s.domains["d"].Limits["type/a"]; l == nil || l.Closed() {
		t.Fatalf("the limit stands as %+v", l)
	}
}

// I11: who stands first in the line may lack fewer slots than its polls have room for. What it leaves goes to the next
// at once, not when that shows itself again.
func TestI11WhatTheFirstLeavesGoesOn(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.limits["d/a"], w.ends = 100, false
	lists := map[int]string{}
	for i, name := range []string{"l0", "l1", "l2"} {
		w.own(i, 1)
		lists[w.shardOf(name, 0)] = name
	}
	w.poll("all", waiting.Poll{Domain: "d", Tasklist: lists[2], Max: 100, For: time.Hour})
	running := w.ready("d", lists[2], "a", 1, 100)
	w.run(time.Second)
	w.poll("first", waiting.Poll{Domain: "d", Tasklist: lists[1], Max: 1000, For: time.Hour})
	w.ready("d", lists[1], "a", 1, 1)
	w.run(300 * ms)
	w.poll("next", waiting.Poll{Domain: "d", Tasklist: lists[0], Max: 50, For: time.Hour})
	w.ready("d", lists[0], "a", 1, 50)
	w.run(700 * ms)
	for _, one := range running {
		w.finish(one)
	}
	w.run(200 * ms)
	if first, next := w.polls["first"], w.polls["next"]; first.tasks != 1 || next.tasks != 50 {
		t.Fatalf("the first got %d, the next %d of 50", first.tasks, next.tasks)
	}
}
