package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// complains are when a shard complains that polls wait in vain, if it steps each sweepEvery for a time.
func (o *solo) complains(wait time.Duration) (at []time.Duration) {
	o.Helper()
	for from := o.now.Mono; o.now.Mono < from+wait; {
		if o.step(sweepEvery, Inputs{}); len(o.fx.Hungry) > 0 {
			at = append(at, o.now.Mono-from)
		}
	}
	return at
}

// History is informed of a poll that waits in vain after hungryMin, then ever more rarely.
func TestComplaintsBecomeRare(t *testing.T) {
	o := alone(t, 1)
	o.step(0, o.poll(1, time.Hour))
	o.step(sweepEvery, Inputs{}) // it is seen to wait
	at := o.complains(100 * time.Second)
	want := []time.Duration{1, 3, 7, 15, 31, 61, 91}
	if len(at) != len(want) {
		t.Fatalf("it complains at %v", at)
	}
	for i := range want {
		if at[i] != want[i]*time.Second {
			t.Fatalf("it complains at %v", at)
		}
	}
}

// Without tables a poll waits in vain whatever is in them; who does not wait does not complain.
func TestComplaintsWithoutTables(t *testing.T) {
	for _, waits := range []bool{false, true} {
		o := alone(t, 1)
		o.step(0, o.hint("b", 0, 1))
		o.step(0, o.called())
		if waits {
			o.step(0, o.poll(1, time.Hour, "other"))
		}
		o.step(0, o.hint("c", 0, 1))
		o.step(0, Inputs{Outcomes: []CallOutcome{{Domain: "d", Failed: true}}})
		if at := o.complains(2 * time.Second); (len(at) > 0) != waits {
			t.Errorf("a poll waits: %v; it complains at %v", waits, at)
		}
	}
}

// A limited type of which the table holds something is no cause to complain while a call is under way, but
// is, after a while, where not all partitions have reported what runs.
func TestComplaintsAboutLimitedTypes(t *testing.T) {
	o := alone(t, 1)
	o.catalog.limits["d/a"] = 2
	o.step(0, Inputs{Limits: []string{"d"}})
	asked := o.fx.Asks
	o.step(0, o.hint("a", 0, 1))
	o.step(0, o.called())
	o.step(0, o.poll(1, time.Hour))
	o.step(sweepEvery, Inputs{})
	if at := o.complains(hungryMax + time.Second); len(at) != 1 || at[0] != hungryMax {
		t.Errorf("it complains at %v", at)
	}
	o.step(0, Inputs{Answers: []question.Answer{{Question: asked[0]}}})
	if len(o.fx.Calls) != 1 || len(o.fx.Calls[0].Wants) != 1 {
		t.Fatalf("it calls %+v", o.fx.Calls)
	}
	if at := o.complains(2 * hungryMax); len(at) != 0 {
		t.Errorf("it complains at %v", at)
	}
}

// A tasklist and its domain are remembered for idleAfter each, from when they were seen to be idle.
func TestIdleTasklistsAndDomainsAreRemembered(t *testing.T) {
	o := alone(t, 1)
	o.step(time.Hour, o.poll(1, 0))
	o.step(sweepEvery, Inputs{}) // it is seen
	for _, c := range []struct {
		after          time.Duration
		lists, domains int
	}{{idleAfter - sweepEvery, 1, 1}, {sweepEvery, 0, 1}, {idleAfter - sweepEvery, 0, 1}, {sweepEvery, 0, 0}} {
		o.s.sweepAt = 0 // it is due
		o.step(c.after, Inputs{})
		if n := o.s.Census(); n.Lists != c.lists || n.Domains != c.domains {
			t.Fatalf("%v later: %d tasklists, %d domains", c.after, n.Lists, n.Domains)
		}
	}
}

// Triggers of another life of the tables are lost, and history is asked for them; those that an owner
// before has stored are not.
func TestAnotherLifeOfTheTables(t *testing.T) {
	o := alone(t, 1)
	for _, c := range []struct {
		opened table.Opened
		asks   int
	}{
		{table.Opened{Epoch: "e"}, 0},
		{table.Opened{Epoch: "f"}, 1},
		{table.Opened{Epoch: "g", Fresh: true}, 1},
	} {
		o.step(0, o.hint("b", 0, 1))
		o.step(0, Inputs{Outcomes: []CallOutcome{{Domain: "d", Outcome: table.Outcome{Lost: true}}}})
		if o.fx.Counts.Losses != 1 || len(o.fx.Opens) != 1 {
			t.Fatalf("%+v, %d are opened", o.fx.Counts, len(o.fx.Opens))
		}
		o.step(0, Inputs{Opened: []OpenOutcome{{Domain: "d", Opened: c.opened}}})
		if kinds(o.fx.Asks, question.Retrigger) != c.asks {
			t.Errorf("opened as %+v: asked %+v", c.opened, o.fx.Asks)
		}
		o.reply()
	}
	for fresh, asks := range map[bool]int{false: 0, true: 1} {
		name := map[bool]string{false: "known", true: "new"}[fresh]
		o.step(0, Inputs{Polls: []waiting.Poll{{Domain: name, Tasklist: "l", Max: 1}}})
		o.step(0, Inputs{Opened: []OpenOutcome{{Domain: name, Opened: table.Opened{Epoch: "e", Fresh: fresh}}}})
		if kinds(o.fx.Asks, question.Retrigger) != asks {
			t.Errorf("a domain that is %s: asked %+v", name, o.fx.Asks)
		}
	}
}

// A trigger that meets a poll while the tables are away is not lost.
func TestWhatIsMatchedWithoutTablesIsNotAskedFor(t *testing.T) {
	o := alone(t, 1)
	o.step(0, Inputs{Polls: []waiting.Poll{{Domain: "x", Tasklist: "l", Max: 1, For: time.Hour}}})
	o.step(0, Inputs{Opened: []OpenOutcome{{Domain: "x", Failed: true}}})
	g := o.group("b", 3, 0, 1)
	g.Tasklist.Domain = "x"
	o.step(0, Inputs{Hints: []Hints{{Delivery: 1, Triggers: []arrival.Triggers{g}}}})
	if len(o.fx.Batches) != 1 || len(o.fx.Acks) != 1 {
		t.Fatalf("%+v, %+v", o.fx.Batches, o.fx.Acks)
	}
	o.step(tablecall.RetryEvery, Inputs{})
	o.step(0, Inputs{Opened: []OpenOutcome{{Domain: "x", Opened: table.Opened{Epoch: "e"}}}})
	if len(o.fx.Asks) != 0 {
		t.Fatalf("asked %+v", o.fx.Asks)
	}
}

// What waits for a domain to be opened is stored before a shard is given up.
func TestDrainWaitsForADomainThatOpens(t *testing.T) {
	o := alone(t, 1)
	g := o.group("b", 3, 0, 1)
	g.Tasklist.Domain = "x"
	o.step(time.Second, Inputs{Hints: []Hints{{Delivery: 1, Triggers: []arrival.Triggers{g}}}})
	o.step(0, Inputs{Drain: true})
	if o.fx.Drained {
		t.Fatal("it does not wait")
	}
	o.step(0, Inputs{Opened: []OpenOutcome{{Domain: "x", Opened: table.Opened{Epoch: "e"}}}})
	if o.fx.Drained || len(o.fx.Calls) != 1 || len(o.fx.Calls[0].Put) != 1 {
		t.Fatalf("drained: %v, calls %+v", o.fx.Drained, o.fx.Calls)
	}
	if o.step(0, o.called()); !o.fx.Drained || len(o.fx.Acks) != 1 {
		t.Fatalf("drained: %v, %+v", o.fx.Drained, o.fx.Acks)
	}
}

// A hint for a tasklist where no one polls is stored without a look at what the tasklist may give.
func TestAHintWithoutPollsCostsNoLook(t *testing.T) {
	o := alone(t, 1)
	o.step(0, o.hint("b", 0, 1))
	if o.fx.Counts.Looks != 0 || len(o.fx.Calls) != 1 || o.fx.Wake == o.now.Mono {
		t.Errorf("%d looks, %d calls", o.fx.Counts.Looks, len(o.fx.Calls))
	}
}
