package taskstate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestATurnStays with a task through all that follows; its first attempt proves it, also to an owner that did not know.
func TestATurnStays(t *testing.T) {
	task := fresh()
	shared := &Extra{Order: &Order{Key: "a"}}
	task.Extra = shared.LiesAt(7, 3)
	if !task.AwaitsTurn() || !task.HeldUp() {
		t.Fatalf("%+v", task.Order())
	}
	if v := grab(task, t0+10); !v.Granted || task.HeldUp() || *task.Order() != (Order{Key: "a", Index: 3, Turn: true}) {
		t.Fatalf("%+v %+v", v, task.Order())
	}
	if shared.Order.Turn || shared.Order.Index != 0 {
		t.Fatal("what copies share was changed")
	}
	send(task, Failed, t0+20)
	if task.AwaitsTurn() || task.State != Backoff {
		t.Errorf("after a failure: %s", task.State)
	}
	other := fresh()
	other.TakeTurn() // it has no key
	if other.Order() != nil {
		t.Errorf("%+v", other.Order())
	}
}

func TestAnOrderKeyTakesMemory(t *testing.T) {
	if more := (&Task{Extra: &Extra{Order: &Order{Key: "account"}}}).Footprint() - new(Task).Footprint(); more <= len("account") {
		t.Errorf("an order key counts as %d bytes", more)
	}
}

func TestHasOrder(t *testing.T) {
	with := func(o *Order, state State) *Task { return &Task{State: state, Extra: &Extra{Order: o}} }
	for _, c := range []struct {
		of      *Task
		key     string
		blocked bool
		has     bool
	}{
		{new(Task), "", false, true},
		{new(Task), "a", false, false},
		{new(Task), "", true, false},
		{with(&Order{Key: "a"}, Ready), "a", false, true},
		{with(&Order{Key: "a"}, Ready), "b", false, false},
		{with(&Order{Key: "a"}, Ready), "a", true, false},
		{with(&Order{Key: "a", Blocked: true}, Backoff), "a", true, true},
		{with(&Order{Key: "a", Blocked: true}, Backoff), "", true, true},
		{with(&Order{Key: "a", Blocked: true}, Cancelled), "", true, false},
		{with(&Order{Key: "a", Blocked: true}, Backoff), "b", true, false},
	} {
		if o := c.of.Order(); o == nil && c.of.OrderKey() != "" || o != nil && c.of.OrderKey() != "a" {
			t.Errorf("%+v: %q", o, c.of.OrderKey())
		}
		if got := c.of.HasOrder(c.key, c.blocked); got != c.has {
			t.Errorf("%+v: %q %v: %v", c.of.Order(), c.key, c.blocked, got)
		}
	}
}

// TestATaskBlocksItsKey where it would be dead: it waits, whatever its attempts were, until it is cancelled, its time is over, or it gets another attempt.
func TestATaskBlocksItsKey(t *testing.T) {
	blocking := func(expiry Expiry) *Task {
		task := fresh()
		task.Extra = (&Extra{Expiry: expiry, Order: &Order{Key: "a", Blocks: true}}).LiesAt(7, 0)
		task.Policy = &Policy{MaxAttempts: 1, InitialIntervalMS: 1000, Backoff: 1, MaxIntervalMS: 1000, StartToCloseMS: 60_000}
		grab(task, t0)
		v, fx := send(task, Failed, t0+5)
		if v.Code != "" || fx.Finish || fx.Trigger || fx.Park || task.State != Backoff || !task.Order().Blocked || task.FinishedAt != 0 {
			t.Fatalf("%+v %+v %s %+v", v, fx, task.State, task.Order())
		}
		return task
	}
	task := blocking(Expiry{})
	if task.WakeAt() != 0 || !task.HeldUp() || task.Lost != 0 {
		t.Errorf("woken at %d, lost %d times", task.WakeAt(), task.Lost)
	}
	if v := grab(task, t0+1_000_000); v.Code != fault.Stale || task.State != Backoff {
		t.Errorf("granted: %+v", v)
	}
	if last := task.Steps[len(task.Steps)-1]; last.Kind != StepBlocked {
		t.Errorf("its history ends with %+v", last)
	}
	if v, fx := changeAt(task, &Update{Priority: 1}, 10, t0+10); v.Code != "" || fx.Trigger || !task.Order().Blocked {
		t.Errorf("a change of its priority: %+v %+v", v, fx)
	}
	if v, fx := changeAt(task, &Update{Now: true}, 20, t0+20); v.Code != "" || !fx.Trigger || task.HeldUp() || task.State != Ready {
		t.Errorf("run now: %+v %+v %s", v, fx, task.State)
	}
	if v := grab(task, t0+30); !v.Granted {
		t.Fatalf("%+v", v)
	}
	send(task, Failed, t0+40)
	if !task.HeldUp() {
		t.Error("it does not block again")
	}
	if changeAt(task, &Update{DueAt: t0 + 50_000}, 50, t0+50); task.HeldUp() || task.State != Backoff || task.WakeAt() != t0+50_000 {
		t.Errorf("at a time: %s, woken at %d", task.State, task.WakeAt())
	}
	grab(task, t0+50_000)
	if _, fx := send(task, Succeeded, t0+50_010); !fx.Finish || task.State != Completed {
		t.Errorf("%s", task.State)
	}

	task = blocking(Expiry{})
	if _, fx := send(task, Cancel, t0+9); !fx.Finish || task.State != Cancelled {
		t.Errorf("cancelled: %s", task.State)
	}
	task = blocking(Expiry{FinishBy: t0 + 1000})
	testkit.Equal(t, "woken at", task.WakeAt(), t0+1000)
	if _, fx := send(task, Lapse, t0+1000); !fx.Finish || task.State != Lapsed {
		t.Errorf("its time is over: %s", task.State)
	}
}

// TestLostAttemptsBlockAKeyToo: it may be lost again as often afterwards.
func TestLostAttemptsBlockAKeyToo(t *testing.T) {
	task := fresh()
	task.Extra = (&Extra{Order: &Order{Key: "a", Blocks: true}}).LiesAt(7, 0)
	task.Lost = LostMax - 1
	grab(task, t0)
	if send(task, Expired, task.Attempt.BeatBy); !task.HeldUp() || task.Lost != 1 {
		t.Errorf("%s, lost %d times", task.State, task.Lost)
	}
}

// TestATaskThatDoesNotBlockItsKey is dead, and leaves its turn to the next.
func TestATaskThatDoesNotBlockItsKey(t *testing.T) {
	task := first(false)
	grab(task, t0)
	if _, fx := send(task, Failed, t0+5); !fx.Finish || task.State != Dead {
		t.Errorf("%s: %+v", task.State, fx)
	}
}
