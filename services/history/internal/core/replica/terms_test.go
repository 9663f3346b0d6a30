package replica

import (
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// ofType lets a task follow its type as of a revision.
func ofType(typ string, revision int64) func(*taskstate.Task) {
	return func(t *taskstate.Task) {
		p := *t.Policy
		p.OfType, p.TypeRevision = ^taskstate.Fields(0), revision
		t.Type, t.Policy = typ, &p
	}
}

// TestATypeThatChangesHoldsForWhatIsQueued: the turn that starts a task has the terms, and who takes over decides by those.
func TestATypeThatChangesHoldsForWhatIsQueued(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(ofType("old", 1), 1)
	b.submit(ofType("new", 3), 2)
	b.submit(func(*taskstate.Task) {}, 3) // its policy is its own
	snap := b.snap()
	events := &Events{Bytes: 10, Events: []taskstate.Event{{Kind: taskstate.Cancel, ID: id(3), Domain: "shop"}}}
	for n := 1; n <= 3; n++ {
		fence := ids.Token{Position: b.r.Get(id(n)).Position, Version: 1, Nonce: 5}
		events.Events = append(events.Events, taskstate.Event{Kind: taskstate.Started, ID: id(n), Fence: fence})
	}
	of := taskstate.TypeName{Domain: "shop", Type: "old"}
	got := OutOfDate(b.r, []*Events{events, events}, func(taskstate.TypeName) int64 { return 3 })
	if !slices.Equal(got, []taskstate.TypeName{of}) {
		t.Fatalf("out of date are %v", got)
	}
	p := *storyPolicy
	p.StartToCloseMS, p.TypeRevision = 99_000, 3
	b.seq++
	turn := &Turn{Seq: b.seq, At: b.now.MS, Batches: []*Events{events}, Terms: []*taskstate.Terms{{Of: of, Policy: &p}}}
	next := turn.copied()
	b.step(turn)
	for name, r := range map[string]*Replica{"live": b.r, "after a takeover": b.takeover(b.r.cfg, snap, next).r} {
		testkit.Equal(t, name+": the time of an attempt", r.Get(id(1)).Attempt.DeadlineAt-b.now.MS, 99_000)
		testkit.Equal(t, name+": of another type", r.Get(id(2)).Attempt.DeadlineAt-b.now.MS, storyPolicy.StartToCloseMS)
	}
	again := OutOfDate(b.r, []*Events{{Events: []taskstate.Event{{Kind: taskstate.Failed, ID: id(1)}}}}, func(taskstate.TypeName) int64 { return 3 })
	testkit.Equal(t, "it is up to date", len(again), 0)
}

// TestATurnHasTheTermsOfSomeTypes: those of more types come with later turns.
func TestATurnHasTheTermsOfSomeTypes(t *testing.T) {
	b := newBench(t, Config{})
	events := new(Events)
	for n := 1; n <= termsMax+5; n++ {
		b.submit(ofType("t"+string(rune('0'+n)), 1), n)
		events.Events = append(events.Events, taskstate.Event{Kind: taskstate.Started, ID: id(n)})
	}
	got := OutOfDate(b.r, []*Events{events}, func(taskstate.TypeName) int64 { return 2 })
	testkit.Equal(t, "types", len(got), termsMax)
}
