package replica

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// keyed reads a message of tasks with an order key.
func (b *bench) keyed(key string, change func(*taskstate.Task), numbers ...int) *Effects {
	b.Helper()
	b.seq++
	in := &Submits{Lane: ids.LaneKeyed, Place: "shop", Seq: b.seq, At: b.now.MS, Bytes: 10}
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
