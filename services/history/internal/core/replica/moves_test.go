package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// queuedIn is how many tasks wait in a tasklist.
func (b *bench) queuedIn(tasklist string) int64 {
	return b.r.Queued(backlog.Queue{Tasklist: backlog.Tasklist{Domain: "shop", Name: tasklist}}).Tasks
}

// TestATaskMovesToAnotherTasklist: it is triggered there, counts there, and the trigger of before is out of date. A takeover has it there, too.
func TestATaskMovesToAnotherTasklist(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2)
	snap := b.snap()
	old := b.r.Get(id(1)).Trigger()
	fx := b.change(1, taskstate.Update{Tasklist: "spare", Request: 4})
	if v := b.said(fx); v.Code != "" || len(fx.Triggers) != 1 || fx.Triggers[0].Tasklist != "spare" {
		t.Fatalf("%+v, triggers %+v", v, fx.Triggers)
	}
	testkit.Equal(t, "left behind", b.queuedIn("mail"), 1)
	testkit.Equal(t, "moved", b.queuedIn("spare"), 1)
	fence := ids.Token{Position: old.Position, Version: old.Version, Nonce: 5}
	testkit.Equal(t, "the old trigger", b.said(b.event(taskstate.Started, 1, fence)).Code, fault.Stale)
	next := b.takeover(b.r.cfg, snap, &Events{Seq: b.seq + 1, At: b.now.MS, Bytes: 10, Events: []taskstate.Event{
		{Kind: taskstate.Changed, ID: id(1), Domain: "shop", Update: &taskstate.Update{Tasklist: "spare", Request: 4, Since: isNew}},
	}})
	testkit.Equal(t, "after a takeover", next.queuedIn("spare"), 1)
	again := b.takeover(b.r.cfg, b.snap())
	testkit.Equal(t, "after a takeover with a snapshot", again.queuedIn("spare"), 1)
	testkit.Equal(t, "granted", b.said(b.start(1)).Granted, true)
	testkit.Equal(t, "one that runs", b.said(b.change(1, taskstate.Update{Tasklist: "mail"})).Code, fault.FailedPrecondition)
	b.finish(taskstate.Succeeded, 1)
	testkit.Equal(t, "it has ended", b.queuedIn("spare"), 0)
}

// TestATaskThatWaitsMoves: one that backs off, one of an order key, and one that goes into the timer store.
func TestATaskThatWaitsMoves(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.start(1)
	b.finish(taskstate.Failed, 1)
	b.submit(func(t *taskstate.Task) { t.DueAt = b.now.MS + 60_000 }, 2)
	b.keyed("k", nil, 3, 4)
	for _, n := range []int{2, 1, 3, 4} {
		if v := b.said(b.change(n, taskstate.Update{Tasklist: "spare"})); v.Code != "" {
			t.Fatalf("task %d: %+v", n, v)
		}
		testkit.Equal(t, "the tasklist", b.r.Get(id(n)).Tasklist, "spare")
	}
	testkit.Equal(t, "they wait there", b.queuedIn("spare"), 3)
	testkit.Equal(t, "the first of its key", b.said(b.start(3)).Granted, true)
}
