package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const directNonce = 77

// direct has a task start with its submit.
func direct(t *taskstate.Task) {
	taskstate.StartsDirectly(t, directNonce, taskstate.NewWorker("w", "", 0))
}

// directly is the token of the attempt that began with the submit of a task.
func (b *bench) directly(n int) ids.Token {
	return ids.Token{Position: b.r.Get(id(n)).Position, Version: 1, Nonce: directNonce}
}

// TestATaskStartsWithItsSubmit: it runs once it is read, there is no trigger, and the worker that has its token ends it.
func TestATaskStartsWithItsSubmit(t *testing.T) {
	b := newBench(t, Config{})
	fx := b.submit(direct, 1)
	task := b.r.Get(id(1))
	if task.State != taskstate.Running || task.Attempt.Worker.Name() != "w" || task.Attempt.DeadlineAt != b.now.MS+storyPolicy.StartToCloseMS || len(fx.Triggers) != 0 || fx.Counts.Direct != 1 {
		t.Fatalf("%+v, %d triggers, counts %+v", task, len(fx.Triggers), fx.Counts)
	}
	other := b.directly(1)
	other.Nonce++
	testkit.Equal(t, "another attempt", b.said(b.event(taskstate.Succeeded, 1, other)).Code, fault.Stale)
	testkit.Equal(t, "a grab", b.said(b.event(taskstate.Started, 1, other)).Code, fault.Stale)
	testkit.Equal(t, "its attempt", b.said(b.event(taskstate.Succeeded, 1, b.directly(1))).Code, "")
	testkit.Equal(t, "it ends", b.r.Get(id(1)).State, taskstate.Completed)
}

// TestAnAttemptThatIsReadLate has had no one to hear its heartbeats: its worker gets time to be heard before it expires, and no other one gets the task meanwhile.
func TestAnAttemptThatIsReadLate(t *testing.T) {
	for _, heard := range []bool{true, false} {
		b := newBench(t, Config{})
		b.seq++
		policy := *storyPolicy
		policy.HeartbeatTimeoutMS, policy.StartToCloseMS = 5000, 60_000
		e := &Entry{Task: taskstate.Task{ID: id(1), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: &policy}}
		direct(&e.Task)
		b.now.MS += 6000
		b.step(&Submits{Lane: 3, Seq: b.seq, At: b.now.MS - 6000, Bytes: 10, Tasks: []*Entry{e}})
		if fx := b.tick(); len(fx.Append) > 0 {
			t.Fatalf("it expires at once: %v", fx.Append)
		}
		if heard {
			testkit.Equal(t, "its heartbeat", b.said(b.event(taskstate.Heartbeat, 1, b.directly(1))).Code, "")
			b.now.MS += 4000
		} else {
			b.now.MS += graceMS
		}
		if fx := b.tick(); len(fx.Append) > 0 == heard {
			t.Errorf("heard %v: it expires: %v", heard, fx.Append)
		}
	}
}

// TestWhenAnAttemptThatBeganWithItsSubmitExpires: at its deadline if it was read at once, and also if it was read late and its deadline is after the grace.
func TestWhenAnAttemptThatBeganWithItsSubmitExpires(t *testing.T) {
	for _, late := range []int64{0, 6000} {
		b := newBench(t, Config{})
		b.seq++
		policy := *storyPolicy
		policy.HeartbeatTimeoutMS, policy.StartToCloseMS = 0, graceMS/2+2*late
		e := &Entry{Task: taskstate.Task{ID: id(1), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: &policy}}
		direct(&e.Task)
		b.now.MS += late
		b.step(&Submits{Lane: 3, Seq: b.seq, At: b.now.MS - late, Bytes: 10, Tasks: []*Entry{e}})
		for _, step := range []struct {
			at      int64
			expires bool
		}{{e.Attempt.DeadlineAt - 1, false}, {e.Attempt.DeadlineAt, true}} {
			b.now.MS = step.at - 250 // a tick later
			if fx := b.tick(); len(fx.Append) > 0 != step.expires {
				t.Errorf("read %d ms late, %d ms before its deadline, these are proposed: %v", late, e.Attempt.DeadlineAt-step.at, fx.Append)
			}
		}
	}
}

// TestAnAttemptThatBeganWithItsSubmitFails: the next one is granted as any other.
func TestAnAttemptThatBeganWithItsSubmitFails(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(direct, 1)
	b.event(taskstate.Released, 1, b.directly(1))
	if task := b.r.Get(id(1)); task.State != taskstate.Ready || task.Failures != 0 {
		t.Fatalf("handed back: %v, %d failures", task.State, task.Failures)
	}
	b.start(1)
	if task := b.r.Get(id(1)); task.State != taskstate.Running || task.Version != 2 {
		t.Errorf("granted again: %v v%d", task.State, task.Version)
	}
	testkit.Equal(t, "the first attempt", b.said(b.event(taskstate.Succeeded, 1, b.directly(1))).Code, fault.Stale)
}

// TestWhatCannotStartWithItsSubmit waits as any other, and the attempt is stale.
func TestWhatCannotStartWithItsSubmit(t *testing.T) {
	for what, c := range map[string]struct {
		change   func(*taskstate.Task)
		state    taskstate.State
		triggers int
	}{
		"an order key": {func(t *taskstate.Task) { t.Extra = &taskstate.Extra{Order: &taskstate.Order{Key: "k"}} }, taskstate.Ready, 1},
		"due later":    {func(t *taskstate.Task) { t.DueAt = scenarioStart + 3_600_000 }, taskstate.Waiting, 0},
		"no time left": {func(t *taskstate.Task) { t.Extra = &taskstate.Extra{Expiry: taskstate.Expiry{StartBy: scenarioStart}} }, taskstate.Ready, 1},
	} {
		b := newBench(t, Config{})
		fx := b.submit(func(t *taskstate.Task) { direct(t); c.change(t) }, 1)
		testkit.Equal(t, what+": triggers", len(fx.Triggers), c.triggers)
		task := b.r.Get(id(1))
		if task.State != c.state || task.Version != 0 || task.Attempt.Nonce != 0 {
			t.Errorf("%s: %v v%d, attempt %+v", what, task.State, task.Version, task.Attempt)
		}
		testkit.Equal(t, what+": its attempt", b.said(b.event(taskstate.Succeeded, 1, b.directly(1))).Code, fault.Stale)
	}
}

// TestTheOutcomeOfAnUnreadTask that started with its submit is not lost: who says it says it again.
func TestTheOutcomeOfAnUnreadTask(t *testing.T) {
	b := newBench(t, Config{})
	b.seq += 5
	token := ids.Token{Position: ids.NewPosition(b.seq-1, 3).InShared(), Version: 1, Nonce: directNonce}
	testkit.Equal(t, "before", b.said(b.event(taskstate.Succeeded, 1, token)).Code, fault.Unavailable)
	b.step(&Submits{Lane: 3, Seq: token.Position.Seq(), At: b.now.MS, Bytes: 10, Tasks: []*Entry{{Task: func() taskstate.Task {
		task := taskstate.Task{ID: id(1), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy}
		direct(&task)
		return task
	}()}}})
	testkit.Equal(t, "after", b.said(b.event(taskstate.Succeeded, 1, token)).Code, "")
}
