package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
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

// turns are the tasks whose turn is proposed.
func turns(fx *Effects) (numbers []int) {
	for _, p := range fx.Append {
		if p.Kind == taskstate.Turn && p.Domain == "shop" {
			numbers = append(numbers, int(p.ID[14])<<8|int(p.ID[15]))
		}
	}
	return numbers
}

// turn reads that it is the turn of a task; what was proposed is stored.
func (b *bench) turn(n int) *Effects {
	b.Helper()
	b.step(Stored{Kind: JobAppend})
	return b.event(taskstate.Turn, n, ids.Token{Position: b.r.Get(id(n)).Position})
}

// TestTasksOfAKeyTakeTurns, in the order in which they came, each key for itself. What has no turn is not triggered, and is refused if it is grabbed.
func TestTasksOfAKeyTakeTurns(t *testing.T) {
	b := newBench(t, Config{})
	fx := b.keyed("a", nil, 1, 2, 3)
	b.equal("triggered", triggered(fx), nil)
	b.equal("proposed", turns(fx), []int{1})
	fx = b.keyed("b", nil, 4)
	if len(fx.Append) != 0 {
		t.Fatal("two appends at a time")
	}
	fx = b.step(Stored{Kind: JobAppend})
	b.equal("proposed for b", turns(fx), []int{4})
	b.equal("its turn", triggered(b.turn(1)), []int{1})
	fx = b.turn(1)
	b.equal("said again", triggered(fx), nil)
	if v := b.said(fx); v.Code != "" {
		t.Errorf("%+v", v)
	}
	if v := b.said(b.start(2)); v.Code != fault.Stale {
		t.Fatalf("granted out of turn: %+v", v)
	}
	b.now.MS += hungryAgeMS + 1
	b.equal("hungry", triggered(b.hungry("shop", "mail")), []int{1})
	b.equal("all again", retriggered(b), []int{1})

	if v := b.said(b.start(1)); !v.Granted {
		t.Fatalf("%+v", v)
	}
	fx = b.finish(taskstate.Failed, 1)
	if e := b.r.Get(id(1)); e.State != taskstate.Backoff || e.AwaitsTurn() || len(fx.Append) > 0 {
		t.Fatalf("after a failure: %s", e.State)
	}
	b.now.MS += 2000
	b.equal("the next attempt", triggered(b.step(Tick{})), []int{1})
	b.start(1)
	b.equal("after the first", turns(b.finish(taskstate.Succeeded, 1)), []int{2})
	b.equal("the next one", triggered(b.turn(2)), []int{2})
	if fx := b.cancels("shop", 3); len(fx.Append) > 0 {
		t.Error("one behind the first ended, and a turn is proposed")
	}
	fx = b.keyed("a", nil, 5)
	b.equal("behind", turns(fx), nil)
	b.start(2)
	b.equal("past one that was cancelled", turns(b.finish(taskstate.Succeeded, 2)), []int{5})
	b.turn(5)
	b.start(5)
	b.finish(taskstate.Succeeded, 5)
	b.cancels("shop", 4)
	if len(b.r.keys) != 0 {
		t.Errorf("%d lines are left", len(b.r.keys))
	}
}

func retriggered(b *bench) []int {
	fx := new(Effects)
	b.r.Retrigger("", -1, b.now, fx)
	b.r.Flush(b.now, fx)
	return triggered(fx)
}

// TestAKeyWaitsInMemory: a task with a key is never parked, whether it is delayed, fails or is put off.
func TestAKeyWaitsInMemory(t *testing.T) {
	b := newBench(t, Config{})
	fx := b.keyed("a", func(t *taskstate.Task) { t.DueAt = b.now.MS + 3_600_000 }, 1)
	b.equal("proposed", turns(fx), []int{1})
	if fx := b.turn(1); len(fx.Triggers) > 0 || b.r.Get(id(1)).State != taskstate.Backoff {
		t.Fatalf("delayed: %s", b.r.Get(id(1)).State)
	}
	b.equal("behind a delayed one", turns(b.keyed("a", nil, 2)), nil)
	b.now.MS += 3_600_000
	b.equal("due", triggered(b.step(Tick{})), []int{1})
	b.start(1)
	b.seq++
	b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Failed, ID: id(1), Fence: b.r.Get(id(1)).Token(), DelayMS: 3_600_000}}})
	if e := b.r.Get(id(1)); e.State != taskstate.Backoff || e.DueAt != b.now.MS+3_600_000 {
		t.Fatalf("a long wait: %s", e.State)
	}
	b.change(1, taskstate.Update{DueAt: b.now.MS + 7_200_000})
	if e := b.r.Get(id(1)); e.State != taskstate.Backoff || e.DueAt != b.now.MS+7_200_000 {
		t.Fatalf("put off: %s", e.State)
	}
	b.equal("run now", triggered(b.change(1, taskstate.Update{Now: true})), []int{1})
	if fx := b.change(2, taskstate.Update{Priority: 1}); len(fx.Triggers) > 0 {
		t.Error("an update triggers a task without its turn")
	}
	b.equal("cancelled", turns(b.cancels("shop", 1)), []int{2})
}

// TestADelayedTaskGetsItsTurnLate: it was due before, and is triggered all the same.
func TestADelayedTaskGetsItsTurnLate(t *testing.T) {
	b := newBench(t, Config{})
	b.keyed("a", nil, 1)
	b.keyed("a", func(t *taskstate.Task) { t.DueAt = b.now.MS + 60_000 }, 2)
	b.turn(1)
	b.now.MS += 60_000
	b.equal("due, and not its turn", triggered(b.step(Tick{})), nil)
	b.start(1)
	b.finish(taskstate.Succeeded, 1)
	b.turn(2)
	b.equal("its turn", triggered(b.step(Tick{})), []int{2})
}

// TestATurnThatTheLogRefusesIsProposedAgain after a while, whether the task is ready or waits for its time; no end is proposed for it.
func TestATurnThatTheLogRefusesIsProposedAgain(t *testing.T) {
	for _, delay := range []int64{0, 3_600_000} {
		b := newBench(t, Config{})
		fx := b.keyed("a", func(t *taskstate.Task) {
			if delay > 0 {
				t.DueAt = b.now.MS + delay
			}
		}, 1)
		b.step(Stored{Kind: JobAppend, Refused: fx.Append})
		if fx := b.step(Tick{}); fx.Append != nil {
			t.Fatalf("proposed at once: %+v", fx.Append)
		}
		b.now.MS += refusedWaitMS
		fx = b.step(Tick{})
		b.equal("proposed again", turns(fx), []int{1})
		if len(fx.Append) != 1 {
			t.Errorf("proposed %+v", fx.Append)
		}
		fx = b.turn(1)
		if delay > 0 {
			b.now.MS += delay
			fx = b.step(Tick{})
		}
		b.equal("triggered", triggered(fx), []int{1})
	}
}

// TestATurnBeginsTheWaitForAGrant: before it the task could not run, however many polls there were.
func TestATurnBeginsTheWaitForAGrant(t *testing.T) {
	b := newBench(t, Config{})
	b.keyed("a", nil, 1)
	b.now.MS += 5000
	b.turn(1)
	if got := b.r.Get(id(1)).ReadyAt; got != b.now.MS {
		t.Errorf("ready since %d ms before its turn", b.now.MS-got)
	}
}

// TestWhatWaitsForItsTurnIsNotNext: neither among the tasks that are to start next, nor does a tasklist count as slow for it.
func TestWhatWaitsForItsTurnIsNotNext(t *testing.T) {
	b := newBench(t, Config{})
	b.keyed("a", nil, 1)
	began := b.now.MS
	b.turn(1)
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
	b.turn(2)
	if next, _ := b.r.Next(9, any); len(next) != 1 {
		t.Errorf("%d tasks are next", len(next))
	}
	if c := b.r.Describe("shop", "mail"); c.OldestReadyAt != began+5000 {
		t.Errorf("%+v", c)
	}
}

// TestManyOfAKeyEnd: a line does not keep those that ended behind a stuck one.
func TestManyOfAKeyEnd(t *testing.T) {
	b := newBench(t, Config{})
	all := make([]int, 100)
	for i := range all {
		all[i] = i + 1
	}
	b.keyed("a", nil, all...)
	b.cancels("shop", all[1:99]...)
	l := b.r.keys[orderKey{"shop", "a"}]
	if len(l.places) > 4 {
		t.Errorf("%d places for 2 tasks", len(l.places))
	}
	b.step(Stored{Kind: JobAppend})
	b.equal("the last", turns(b.cancels("shop", 1)), []int{100})
}
