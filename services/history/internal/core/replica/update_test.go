package replica

import (
	"fmt"
	"math"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/locate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// isNew says of an update that the log has no earlier copy of it.
const isNew = math.MaxInt64

// change reads an update of a task.
func (b *bench) change(n int, u taskstate.Update) *Effects {
	b.Helper()
	b.seq++
	u.Since = isNew
	return b.step(&Events{Seq: b.seq, At: b.now.MS, Bytes: 10, ReplyTo: "asker", RequestID: b.seq, Events: []taskstate.Event{
		{Kind: taskstate.Changed, ID: id(n), Domain: "shop", Update: &u},
	}})
}

// said is the only verdict of a turn.
func (b *bench) said(fx *Effects) Verdict {
	b.Helper()
	if len(fx.Answers) != 1 || len(fx.Answers[0].Verdicts) != 1 {
		b.Fatalf("%d answers", len(fx.Answers))
	}
	return fx.Answers[0].Verdicts[0]
}

// TestAnUpdatedTaskIsTriggeredInItsNewPlace: the trigger of before is STALE; a repeat, and an update that is refused, leave it among those that wait.
func TestAnUpdatedTaskIsTriggeredInItsNewPlace(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	old := b.r.Get(id(1)).Trigger()
	u := taskstate.Update{Priority: 1, Group: "acme", Request: 4}
	fx := b.change(1, u)
	if v := b.said(fx); v.Code != "" || v.Revision != 2 || len(fx.Triggers) != 1 || fx.Triggers[0].Priority != 1 || len(fx.Triggers[0].Groups) != 1 {
		t.Fatalf("%+v, triggers %+v", v, fx.Triggers)
	}
	b.change(1, u)
	b.change(1, taskstate.Update{IfRevision: 9, Priority: 2})
	fence := ids.Token{Position: old.Position, Version: old.Version, Nonce: 5}
	if v := b.said(b.event(taskstate.Started, 1, fence)); v.Code != fault.Stale {
		t.Errorf("the old trigger: %+v", v)
	}
	b.now.MS += dispatch.MissingAgeMS + 1
	b.equal("triggered again", triggered(b.hungry("shop", "mail")), []int{1})
	if q := b.r.Queued(backlog.Queue{Tasklist: backlog.Tasklist{Domain: "shop", Name: "mail"}, Group: "acme"}); q.Tasks != 1 {
		t.Errorf("the group has %+v", q)
	}
	if v := b.said(b.start(1)); !v.Granted {
		t.Errorf("%+v", v)
	}
}

// TestAnUpdateOfAWaitingTask: the timer fires it early. As it comes in it is changed by all that wait, in log order, and goes back as its next stay; a
// refused update changes nothing. One that comes before the timer store has it changes it, too; one that comes while it is stored waits.
func TestAnUpdateOfAWaitingTask(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 2)
	b.seq += 10
	fx := b.change(1, taskstate.Update{Now: true})
	if len(fx.Searches) != 1 || !fx.Searches[0].Command || fx.Searches[0].Domain != "shop" {
		t.Fatalf("searches %+v", fx.Searches)
	}
	b.change(1, taskstate.Update{IfRevision: 7, Priority: 5})
	b.change(1, taskstate.Update{IfRevision: 2, Priority: 1})
	decided := b.seq
	again := b.step(&Found{Search: fx.Searches[0], Coming: true}) // two updates have come since it was asked
	b.step(&Found{Search: again.Searches[0], Coming: true})
	b.seq++
	fx = b.step(&Submits{Lane: ids.LaneLater, Place: "shop", Seq: b.seq, At: b.now.MS, Tasks: []*Entry{{Task: taskstate.Task{
		ID: id(1), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy, Parkings: 1,
		Position: ids.NewPosition(1, 3), DueAt: scenarioStart + 3_600_000,
	}}}})
	if len(fx.Park) > 0 {
		t.Errorf("parks %v, which no turn has admitted", fx.Park)
	}
	b.prove(fx)
	testkit.Equal(t, "verdicts", answered(fx), fmt.Sprintf("%d/0 ok, %d/0 STALE, %d/0 ok", decided-2, decided-1, decided))
	if len(fx.Park) != 1 {
		t.Fatalf("parks %v", fx.Park)
	}
	if e := fx.Park[0]; e.Parkings != 2 || e.DueAt > b.now.MS || e.Priority != 1 || e.Revision() != 3 || e.Extra.Updates.Seq != decided {
		t.Errorf("parks stay %d, due %d, revision %d, decided %d", e.Parkings, e.DueAt, e.Revision(), e.Extra.Updates.Seq)
	}
	if fx := b.change(1, taskstate.Update{Priority: 2}); len(fx.Searches)+len(fx.Answers) > 0 {
		t.Errorf("while it is stored: %+v", fx)
	}
	if fx := b.step(Stored{Kind: JobPark, Seq: 5}); len(fx.Searches) != 1 {
		t.Errorf("behind that: searches %+v", fx.Searches)
	}
}

// TestUpdatesThatWaitAreBoundedByTheirBytes: a large one counts as many.
func TestUpdatesThatWaitAreBoundedByTheirBytes(t *testing.T) {
	b := newBench(t, Config{})
	large := taskstate.Update{HasPayload: true, Payload: taskstate.Blob{Data: make([]byte, 256<<10)}}
	n := 0
	for ; len(b.r.Waiting().Domains) == 0; n++ {
		b.change(n+1, large)
	}
	if n < 20 || n > locate.DomainCommandsMax/64+1 {
		t.Errorf("%d updates of 256 KiB wait", n)
	}
}

// TestACancelOnTheWayIntoTheTimerStore: the task waits behind a write that is under way, so it is cancelled at once. It is in no write, and goes into the archive,
// though another one that waited with it is stored.
func TestACancelOnTheWayIntoTheTimerStore(t *testing.T) {
	b := newBench(t, Config{})
	later := func(t *taskstate.Task) { t.DueAt = scenarioStart + 60_000 }
	b.submit(later, 1)
	b.turn() // its write begins
	b.submit(later, 2, 3)
	b.turn()
	if fx := b.cancels("shop", 2); answered(fx) == "" || len(fx.Searches) > 0 {
		t.Errorf("answers %q, searches %+v", answered(fx), fx.Searches)
	}
	fx := b.step(Stored{Kind: JobPark, Seq: 1})
	if len(fx.Park) != 1 || fx.Park[0].ID != id(3) {
		t.Errorf("parks %v", fx.Park)
	}
	if fx := b.step(Stored{Kind: JobPark, Seq: 2}); fx.Counts.Parked != 1 {
		t.Errorf("%d are parked", fx.Counts.Parked)
	}
	b.equal("archived", archived(b.linger()), []int{2})
}

// TestUpdatesKeepTheirOrderOverATakeover: the first one came while the task was being stored, and waits as of the snapshot; the second one lies behind that.
func TestUpdatesKeepTheirOrderOverATakeover(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(func(t *taskstate.Task) { t.DueAt = scenarioStart + 60_000 }, 1)
	b.turn() // its write begins
	ask := func(seq, request uint64, priority int32) *Events {
		return &Events{Seq: seq, At: b.now.MS, Bytes: 10, Events: []taskstate.Event{
			{Kind: taskstate.Changed, ID: id(1), Domain: "shop", Update: &taskstate.Update{Request: request, Priority: priority, Since: isNew}},
		}}
	}
	first, second := ask(b.r.EventAt()+1, 4, 1), ask(b.r.EventAt()+3, 5, 2)
	b.step(ask(first.Seq, 4, 1))
	b.seq = b.r.EventAt()
	snap := b.snapshot()
	testkit.Equal(t, "waiting as of the snapshot", len(snap.Waiting), 1)
	next := b.takeover(b.r.cfg, snap, second)
	fx := next.step(Stored{Kind: JobPark, Seq: 1})
	if len(fx.Searches) != 1 {
		t.Fatalf("searches %+v", fx.Searches)
	}
	next.step(&Found{Search: fx.Searches[0], Coming: true})
	next.seq = next.r.EventAt() + 10
	fx = next.step(&Submits{Lane: ids.LaneLater, Place: "shop", Seq: next.seq, At: b.now.MS, Tasks: []*Entry{{Task: snap.Tasks[0].Task}}})
	next.prove(fx)
	if len(fx.Park) != 1 || fx.Park[0].Priority != 2 || fx.Park[0].Revision() != 3 {
		t.Fatalf("parks %v", fx.Park)
	}
}
