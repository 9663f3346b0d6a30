package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// R8: the tables of one domain fail, and no other notices.
func TestR8OneDomainFails(t *testing.T) {
	w, _ := begun(t, 1)
	w.down["bad"] = true
	w.poll("bad", waiting.Poll{Domain: "bad", Tasklist: "l0", Max: 1, For: time.Minute})
	w.run(time.Second)
	w.ready("bad", "l0", "x", 1, 1) // it meets its poll without tables
	w.run(20 * ms)
	w.wantTasks("bad", 1)
	w.ready("d", "l0", "b", 1, 5)
	w.run(20 * ms)
	began := w.now
	w.wait("p", 5)
	w.run(20 * ms)
	if p := w.polls["p"]; p.tasks != 5 || p.at-began > 10*ms {
		t.Fatalf("the good domain's poll got %+v, after %v", p, p.at-began)
	}
}

// R33: a trigger that comes again while its grab is known is dropped silently, on its way to a poll
// and on its way to the table.
func TestR33DoublesAreDropped(t *testing.T) {
	w, o := begun(t, 1)
	w.ends = false
	w.wait("p", 2)
	w.run(ms)
	made := w.ready("d", "l0", "b", 1, 2)
	w.run(20 * ms)
	for _, x := range made { // the same triggers as before
		x.version--
	}
	w.trigger(made...)
	w.run(20 * ms)
	w.wait("q", 5)
	w.run(20 * ms)
	w.trigger(made...)
	w.run(20 * ms)
	if w.counts.Duplicates != 4 || w.counts.GrabsRefused != 0 {
		t.Fatalf("%d doubles, %d grabs refused", w.counts.Duplicates, w.counts.GrabsRefused)
	}
	if ready, polls := counts(o.s, "d", "l0"); ready != 0 || polls != 1 {
		t.Fatalf("%d triggers, %d polls", ready, polls)
	}
}

// A grab refused for a reason that may pass may be made again; the same is not said twice of one that
// is out of date.
func TestRefusedGrabMayComeAgain(t *testing.T) {
	for code, again := range map[string]bool{"FAILED_PRECONDITION": true, "UNAVAILABLE": true, "STALE": false, "NOT_FOUND": false} {
		w, o := begun(t, 1)
		w.partitions[0].silent = true
		w.wait("p", 1)
		w.run(ms)
		made := w.ready("d", "l0", "b", 1, 1)
		w.run(10 * ms)
		b := w.batches[len(w.batches)-1]
		w.partitions[0].kept = nil
		o.give(func(in *Inputs) {
			in.Verdicts = append(in.Verdicts, grab.Verdicts{Partition: 0, Batch: b.Number, All: []grab.Verdict{{Refused: code}}})
		})
		w.run(10 * ms)
		w.speak(0)
		w.trigger(made...)
		w.run(20 * ms)
		testkit.Equal(t, fmt.Sprintf("after %s it is grabbed again", code), w.polls["p"].tasks == 1, again)
	}
}

// R34: a limit that shards share goes to who waits longest.
func TestR34ShardsTakeTurns(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.limits["d/pay"] = 1
	w.own(0, 1)
	w.own(1, 1)
	w.run(100 * ms)
	got := map[string]int{}
	w.deaf = func(inbox string) bool { got[inbox[:2]]++; return false }
	n := 0
	for i := range 2 {
		w.ready("d", fmt.Sprint("l", i), "pay", 3, 400)
	}
	for range 400 {
		for i := range 2 {
			n++
			w.poll(fmt.Sprint("l", i, " ", n), waiting.Poll{Domain: "d", Tasklist: fmt.Sprint("l", i), Max: 1, For: time.Minute})
		}
		w.run(12 * ms)
	}
	testkit.Equal(t, "ran at once", w.peak["d/pay"], 1)
	if a, b := got["l0"], got["l1"]; a+b < 150 || a > 2*b || b > 2*a {
		t.Errorf("one shard got %d, the other %d", a, b)
	}
	if len(w.freeds) == 0 {
		t.Error("no one was informed of what was freed") // R71: Freed not reported
	}
}

// R35, R36: while tables are away no hint stays unacknowledged and none is forgotten: unlimited types meet
// polls, and history is asked for the rest when the tables are back.
func TestR35NothingIsLostWithoutTables(t *testing.T) {
	w, o := begun(t, 2)
	w.limit("d/a", 3)
	w.run(100 * ms)
	w.down["d"] = true
	w.wait("p", 10)
	w.run(ms)
	w.ready("d", "l0", "b", 1, 1) // the call fails, or it is given without
	w.run(20 * ms)
	for range 2000 {
		w.ready("d", "l0", "b", 1, 1)
		w.ready("d", "l0", "a", 1, 1)
	}
	w.run(2 * time.Second)
	if len(o.deliveries) > 0 {
		t.Fatalf("%d messages are not acknowledged", len(o.deliveries))
	}
	w.wait("q", 10)
	w.ready("d", "l0", "b", 1, 5)
	w.run(20 * ms)
	w.wantTasks("q", 5)
	w.retrigs = nil
	w.down["d"] = false
	w.run(time.Second)
	asked := map[int]bool{}
	for _, a := range w.retrigs {
		asked[a.Partition] = asked[a.Partition] || a.Domain == "d"
	}
	if !asked[0] || !asked[1] {
		t.Fatalf("asked for %+v", w.retrigs)
	}
	for i := range 600 {
		w.wait(fmt.Sprint("r", i), 10)
		w.run(20 * ms)
	}
	if w.done() < 2000 { // the limited ones take their time
		t.Fatalf("%d tasks are done", w.done())
	}
}

// R36: what a call has taken whose outcome is lost comes again at once, limited or not.
func TestR36LostOutcomeHeals(t *testing.T) {
	w, _ := begun(t, 1)
	w.limit("d/a", 1)
	w.run(100 * ms)
	w.ready("d", "l0", "a", 1, 1)
	w.run(50 * ms)
	lose := true
	w.lossy = func(c *table.Call) (bool, bool) {
		lost := lose && len(c.Wants) > 0
		lose = lose && !lost
		return lost, true
	}
	w.wait("p", 1)
	w.run(time.Second)
	w.wantTasks("p", 1)
}

// R36: history is informed of each poll that waits in vain, whatever else the table holds.
func TestR36HungryPerPoll(t *testing.T) {
	w, _ := begun(t, 1)
	w.ready("d", "l0", "a", 1, 3) // no one polls for these
	w.run(100 * ms)
	w.wait("p", 1, "b")
	w.run(1600 * ms)
	testkit.MustEqual(t, "hints after 1.6 s", len(w.hungry), 1)
	w.run(2 * time.Minute)
	if n := len(w.hungry); n < 5 || n > 8 { // it waits for up to 30 s
		t.Fatalf("%d hints after 2 minutes", n)
	}
	// A full limit does not silence them either.
	w.limit("d/a", 1)
	w.ends = false
	w.wait("q", 1, "a")
	w.run(time.Second)
	w.hungry = nil
	w.wait("r", 1, "a", "c")
	w.run(time.Minute)
	if len(w.hungry) == 0 {
		t.Fatal("a full limit silences a poll")
	}
}

// R37: polls that are answered leave nothing.
func TestR37AnsweredPollsAreForgotten(t *testing.T) {
	w, o := begun(t, 1)
	for i := range 20_000 {
		w.wait(fmt.Sprint("p", i), 1)
		if i%500 == 499 {
			w.ready("d", "l0", "b", 1, 500)
			w.run(10 * ms)
		}
	}
	w.run(100 * ms)
	if n := o.s.waiting.Len(); n > 0 || w.done() < 19_000 {
		t.Fatalf("%d polls are held, %d tasks done", n, w.done())
	}
	w.run(5 * time.Minute)
	checkEmpty(t, o.s)
}

// What is idle is forgotten, and an idle shard sleeps.
func TestIdleShardSleeps(t *testing.T) {
	w, o := begun(t, 2)
	w.limits["e/a"] = 1
	w.poll("p", waiting.Poll{Domain: "e", Tasklist: "l0", Max: 1, For: time.Second})
	w.ready("e", "l0", "a", 1, 1)
	w.run(5 * time.Minute)
	checkEmpty(t, o.s)
	if sleep := o.fx.Wake - w.now; sleep < 30*time.Second && o.fx.Wake > 0 {
		if o.s.sweepIn() == sweepEvery {
			t.Errorf("it wakes in %v", sleep)
		}
	}
}

// Nothing goes past what stands before it: neither past the table, nor past what is on its way there.
func TestDirectWaitsItsTurn(t *testing.T) {
	w, o := begun(t, 1)
	hold := true
	w.delay = func() time.Duration {
		if hold {
			return 20 * ms
		}
		return ms
	}
	first := w.ready("d", "l0", "b", 1, 1)
	w.run(25 * ms) // it is being stored
	second := w.ready("d", "l0", "b", 1, 1)
	w.run(10 * ms)
	w.wait("p", 1)
	w.run(200 * ms)
	if first[0].state == "ready" || second[0].state != "ready" {
		t.Fatalf("the first is %s, the second %s", first[0].state, second[0].state)
	}
	_ = o
}

// R71: direct ignores putting. A poll that comes with a trigger while an older one waits for the
// call under way does not get the newer one.
func TestDirectDoesNotPassWhatIsStored(t *testing.T) {
	w, o := begun(t, 1)
	l := table.Tasklist{Domain: "d", Name: "l0"}
	group := func(readyAt int64, priority int, typ string, tasks ...*task) Hints {
		var packed []byte
		for _, x := range tasks {
			packed = ids.AppendTrigger(packed, ids.Trigger{ID: x.id, Version: 1})
		}
		w.count++
		o.deliveries[uint64(w.count)] = true
		return Hints{Delivery: uint64(w.count), Triggers: []arrival.Triggers{{Tasklist: l, Column: table.Column{Priority: priority, Type: typ}, ReadyAt: readyAt, Packed: packed}}}
	}
	urgent, later := w.task("d", "l0", "a", 1, 0), w.task("d", "l0", "b", 2, 0)
	w.wait("p", 1, "b")
	w.run(20 * ms)
	// a has no one, so it is being stored; b comes in the same turn for a poll of b alone.
	o.give(func(in *Inputs) { in.Hints = append(in.Hints, group(1, 1, "a", urgent), group(2, 2, "b", later)) })
	w.run(10 * ms)
	testkit.MustEqual(t, "it went past one that was being stored", w.counts.SyncMatches, 0)
	if w.polls["p"].tasks != 1 || later.state == "ready" {
		t.Fatalf("by way of the table it got %+v", w.polls["p"])
	}
}
