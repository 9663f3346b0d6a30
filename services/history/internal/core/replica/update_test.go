package replica

import (
	"math"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
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

// takes is the only search of a turn, for a task.
func (b *bench) takes(fx *Effects, take bool) *Found {
	b.Helper()
	if len(fx.Searches) != 1 || !fx.Searches[0].Update || fx.Searches[0].Take != take {
		b.Fatalf("searches %+v", fx.Searches)
	}
	return &Found{Search: fx.Searches[0]}
}

// waiting is a task as the timer store has it, parked from a position.
func waiting(n int, seq uint64) *Entry {
	return &Entry{Task: taskstate.Task{
		ID: id(n), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy, Parkings: 1, State: taskstate.Waiting,
		Position: ids.NewPosition(seq, 3), DueAt: scenarioStart + 3_600_000,
	}}
}

// TestAnUpdateOfAWaitingTask: it is looked for, taken out, changed by all that wait, in log order, and parked as its next stay; a refused one changes
// nothing, and it goes back all the same. A cancel ends it.
func TestAnUpdateOfAWaitingTask(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 2)
	b.seq += 10
	looked := b.takes(b.change(1, taskstate.Update{Now: true}), false)
	b.change(1, taskstate.Update{IfRevision: 7, Priority: 5})
	b.change(1, taskstate.Update{IfRevision: 2, Priority: 1})
	looked.Waiting = waiting(1, 1)
	taken := b.takes(b.step(looked), true)
	taken.Taken = waiting(1, 1)
	decided := b.seq
	fx := b.step(taken)
	var got []fault.Code
	for _, a := range fx.Answers {
		got = append(got, a.Verdicts[0].Code)
	}
	if len(got) != 3 || got[0] != "" || got[1] != fault.Stale || got[2] != "" {
		t.Errorf("verdicts %q", got)
	}
	if len(fx.Park) != 1 {
		t.Fatalf("parks %v", fx.Park)
	}
	if e := fx.Park[0]; e.Parkings != 2 || e.DueAt > b.now.MS || e.Priority != 1 || e.Revision() != 3 || e.Extra.Updates.Seq != decided || !e.Position.Same(ids.NewPosition(1, 3)) {
		t.Errorf("parks stay %d, due %d, revision %d, decided %d, at %v", e.Parkings, e.DueAt, e.Revision(), e.Extra.Updates.Seq, e.Position)
	}
	if cp := b.r.Checkpoint(); cp.PendingSince == 0 {
		t.Errorf("the checkpoint forgets the updates: pending since %d", cp.PendingSince)
	}
	// What comes meanwhile waits until it has left.
	if fx := b.change(1, taskstate.Update{Priority: 2}); len(fx.Searches)+len(fx.Answers) > 0 {
		t.Errorf("%+v", fx)
	}
	looked = b.takes(b.step(Stored{Kind: JobPark, Seq: 5}), false)
	again := *fx.Park[0]
	looked.Waiting = waiting(1, 1)
	looked.Waiting.Task = again.Task
	taken = b.takes(b.step(looked), true)
	taken.Taken = looked.Waiting
	b.seq++
	b.step(&Events{Seq: b.seq, At: b.now.MS, Bytes: 10, Events: []taskstate.Event{{Kind: taskstate.Cancel, ID: id(1), Domain: "shop"}}})
	if fx := b.step(taken); len(fx.Park) != 0 || b.r.Get(id(1)).State != taskstate.Cancelled || b.said(fx).Revision != 4 {
		t.Errorf("a cancel behind it: %v", b.r.Get(id(1)))
	}
}

// TestWhatIsNotReadIsNotTakenOut: where the stay before the one in the timer store is not read yet, the updates wait for that.
func TestWhatIsNotReadIsNotTakenOut(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 9
	looked := b.takes(b.change(1, taskstate.Update{Priority: 1}), false)
	looked.Waiting = waiting(1, 5)
	looked.Ends[3] = 5
	if fx := b.step(looked); len(fx.Searches)+len(fx.Answers) > 0 {
		t.Fatalf("%+v", fx.Searches)
	}
	b.seq = 4
	fx := b.submit(nil, 1)
	b.prove(fx)
	if v := b.said(fx); v.Revision != 2 || b.r.Get(id(1)).Priority != 1 {
		t.Errorf("%+v", v)
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
	if n < 20 || n > domainCommandsMax/64+1 {
		t.Errorf("%d updates of 256 KiB wait", n)
	}
}
