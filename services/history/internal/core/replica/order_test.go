package replica

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// keyed reads a message of tasks with an order key.
func (b *bench) keyed(key string, change func(*taskstate.Task), numbers ...int) *Effects {
	b.Helper()
	b.seq++
	in := &Submits{Lane: ids.LaneKeyed, Domain: "shop", Seq: b.seq, At: b.now.MS, Bytes: 10}
	for _, n := range numbers {
		e := &Entry{Task: taskstate.Task{ID: id(n), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy}}
		e.Extra = &taskstate.Extra{Order: &taskstate.Order{Key: key}}
		if change != nil {
			change(&e.Task)
		}
		in.Tasks = append(in.Tasks, e)
	}
	return b.step(in)
}

// TestTasksOfAKeyTakeTurns, in the order in which they came, each key for itself. What has no turn is not triggered.
func TestTasksOfAKeyTakeTurns(t *testing.T) {
	b := newBench(t, Config{})
	b.equal("the first of its key", triggered(b.keyed("a", nil, 1, 2, 3)), []int{1})
	b.equal("of another key", triggered(b.keyed("b", nil, 4)), []int{4})
	b.now.MS += dispatch.MissingAgeMS + 1
	b.equal("hungry", triggered(b.hungry("shop", "mail")), []int{1, 4})
	b.equal("all again", retriggered(b), []int{1, 4})

	if v := b.said(b.start(1)); !v.Granted {
		t.Fatalf("%+v", v)
	}
	fx := b.finish(taskstate.Failed, 1)
	if e := b.r.Get(id(1)); e.State != taskstate.Backoff || e.AwaitsTurn() || len(fx.Triggers) > 0 {
		t.Fatalf("after a failure: %s", e.State)
	}
	b.now.MS += 2000
	b.equal("the next attempt", triggered(b.step(Tick{})), []int{1})
	b.start(1)
	b.equal("after the first", triggered(b.finish(taskstate.Succeeded, 1)), []int{2})
	if fx := b.cancels("shop", 3); len(fx.Triggers) > 0 {
		t.Error("one behind the first ended, and a task is triggered")
	}
	b.equal("behind", triggered(b.keyed("a", nil, 5)), nil)
	b.start(2)
	b.equal("past one that was cancelled", triggered(b.finish(taskstate.Succeeded, 2)), []int{5})
	b.start(5)
	b.finish(taskstate.Succeeded, 5)
	b.cancels("shop", 4)
	testkit.Equal(t, "lines are left", b.r.lines.Len(), 0)
}

// parked are the tasks that go to the timer store, and are stored there.
func (b *bench) parked(fx *Effects) (numbers []int) {
	b.Helper()
	for _, e := range fx.Park {
		numbers = append(numbers, int(e.ID[14])<<8|int(e.ID[15]))
	}
	if len(numbers) > 0 {
		b.step(Stored{Kind: JobPark})
	}
	return numbers
}

// fired brings a task with an order key back from the timer store.
func (b *bench) fired(key string, n int) *Effects {
	b.Helper()
	return b.keyed(key, func(t *taskstate.Task) { t.Parkings = 1 }, n)
}

func retriggered(b *bench) []int {
	fx := new(Effects)
	b.r.Retrigger("", -1, b.now.MS, &fx.Effects)
	b.r.Flush(b.now, fx)
	return triggered(fx)
}

// TestI9_WhatIsNotDueBlocksNobody: a delayed task waits in the timer store, and joins the line of its key when it has come back.
func TestI9_WhatIsNotDueBlocksNobody(t *testing.T) {
	b := newBench(t, Config{})
	b.keyed("a", func(t *taskstate.Task) { t.DueAt = b.now.MS + 3_600_000 }, 1)
	b.equal("parked", b.parked(b.turn()), []int{1})
	b.equal("behind a delayed one", triggered(b.keyed("a", nil, 2, 3)), []int{2})
	b.start(2)
	b.now.MS += 3_600_000
	b.equal("fired behind those of its key", triggered(b.fired("a", 1)), nil)
	b.equal("next", triggered(b.finish(taskstate.Succeeded, 2)), []int{3})
	b.start(3)
	b.equal("its turn", triggered(b.finish(taskstate.Succeeded, 3)), []int{1})
}

// TestAKeyWaitsForATaskThatHasBegun: between its attempts a task keeps its turn, however long it waits.
func TestAKeyWaitsForATaskThatHasBegun(t *testing.T) {
	b := newBench(t, Config{})
	b.keyed("a", nil, 1, 2)
	b.start(1)
	b.seq++
	b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Failed, ID: id(1), Fence: b.r.Get(id(1)).Token(), DelayMS: 3_600_000}}})
	if e := b.r.Get(id(1)); e.State != taskstate.Backoff || e.DueAt != b.now.MS+3_600_000 {
		t.Fatalf("a long wait: %s", e.State)
	}
	b.equal("put off", triggered(b.change(1, taskstate.Update{DueAt: b.now.MS + 7_200_000})), nil)
	if e := b.r.Get(id(1)); e.State != taskstate.Backoff || e.DueAt != b.now.MS+7_200_000 {
		t.Fatalf("put off: %s", e.State)
	}
	b.equal("run now", triggered(b.change(1, taskstate.Update{Now: true})), []int{1})
	if fx := b.change(2, taskstate.Update{Priority: 1}); len(fx.Triggers) > 0 {
		t.Error("an update triggers a task without its turn")
	}
	b.equal("cancelled", triggered(b.cancels("shop", 1)), []int{2})
}

// TestAFirstTaskThatIsPutOff gives up its turn, unless an attempt of it has begun. A grab by its old trigger is refused.
func TestAFirstTaskThatIsPutOff(t *testing.T) {
	b := newBench(t, Config{})
	b.keyed("a", nil, 1, 2)
	fx := b.change(1, taskstate.Update{DueAt: b.now.MS + 1})
	b.equal("the next one", triggered(fx), []int{2})
	if v := b.said(b.start(1)); v.Granted {
		t.Error("it starts beside the next one")
	}
	b.equal("parked", b.parked(fx), []int{1})
	b.equal("put off behind the first one", triggered(b.change(2, taskstate.Update{DueAt: b.now.MS + 1})), nil)
	testkit.Equal(t, "lines are left", b.r.lines.Len(), 0)
}

// TestNoTurnWhileATakeoverReads: what the turns say comes first, and nothing is triggered before the end.
func TestNoTurnWhileATakeoverReads(t *testing.T) {
	b := newBench(t, Config{})
	b.r = New(Config{Shards: 2, WindowTasks: 1000, WindowBytes: 1 << 20}, begin(time.Hour))
	b.keyed("a", nil, 1, 2)
	if e := b.r.Get(id(1)); !e.AwaitsTurn() {
		t.Fatal("it has its turn before all is read")
	}
	b.equal("at its end", triggered(b.step(Recovered{})), []int{1})
}

// TestATurnBeginsTheWaitForAGrant: before it the task could not run, however many polls there were.
func TestATurnBeginsTheWaitForAGrant(t *testing.T) {
	b := newBench(t, Config{})
	b.keyed("a", nil, 1, 2)
	b.start(1)
	b.now.MS += 5000
	if fx := b.finish(taskstate.Succeeded, 1); fx.Triggers[0].ReadyAt != b.now.MS {
		t.Errorf("ready since %d ms before its turn", b.now.MS-fx.Triggers[0].ReadyAt)
	}
	if v := b.said(b.start(2)); v.Grant.ReadyAt != b.now.MS {
		t.Errorf("granted what waited for %d ms", b.now.MS-v.Grant.ReadyAt)
	}
	b.finish(taskstate.Failed, 2)
	b.now.MS += 60_000
	due := b.r.Get(id(2)).ReadyAt
	if fx := b.step(Tick{}); len(fx.Triggers) != 1 || fx.Triggers[0].ReadyAt != due {
		t.Errorf("its next attempt: %+v, ready at %d", fx.Triggers, due)
	}
}

// TestWhatWaitsForItsTurnIsNotNext: neither among the tasks that are to start next, nor does a tasklist count as slow for it.
func TestWhatWaitsForItsTurnIsNotNext(t *testing.T) {
	b := newBench(t, Config{})
	b.keyed("a", nil, 1)
	began := b.now.MS
	b.start(1)
	b.keyed("a", nil, 2)
	any := func(*taskstate.Task) bool { return true }
	if next, _ := b.r.Next(9, any); len(next) != 0 {
		t.Errorf("%d tasks are next", len(next))
	}
	if c := b.r.Describe("shop", "mail"); c.OldestReadyAt != 0 || c.Ready != 1 || c.Running != 1 {
		t.Errorf("%+v", c)
	}
	b.now.MS += 5000
	b.finish(taskstate.Succeeded, 1)
	if next, _ := b.r.Next(9, any); len(next) != 1 {
		t.Errorf("%d tasks are next", len(next))
	}
	if c := b.r.Describe("shop", "mail"); c.OldestReadyAt != began+5000 {
		t.Errorf("%+v", c)
	}
}
