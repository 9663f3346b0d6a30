package taskstate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// TestNoAttemptBeginsBeforeItsTurn; with it, it stays through all that follows.
func TestNoAttemptBeginsBeforeItsTurn(t *testing.T) {
	task := fresh()
	shared := &Extra{Order: &Order{Key: "a"}}
	task.Extra = shared.LiesAt(7, 3)
	if v := grab(task, t0); v.Code != fault.Stale || task.State != Ready || task.Version != 0 {
		t.Fatalf("%+v, %s", v, task.State)
	}
	if v, fx := send(task, Turn, t0+5); v.Code != "" || !fx.Trigger || task.ReadyAt != t0+5 || *task.Order() != (Order{Key: "a", Index: 3, Turn: true}) {
		t.Fatalf("%+v %+v %+v", v, fx, task.Order())
	}
	if shared.Order.Turn || shared.Order.Index != 0 {
		t.Fatal("what copies share was changed")
	}
	if _, fx := send(task, Turn, t0+9); fx != (Effects{}) || task.ReadyAt != t0+5 {
		t.Error("a turn that is said again has an effect")
	}
	if v := grab(task, t0+10); !v.Granted {
		t.Fatalf("%+v", v)
	}
	if v, _ := send(task, Turn, t0+10); v.Code != fault.Stale {
		t.Errorf("of a task that runs: %+v", v)
	}
	send(task, Failed, t0+20)
	if task.AwaitsTurn() || task.State != Backoff {
		t.Errorf("after a failure: %s", task.State)
	}
	task.Policy.MaxAttempts = 1
	grab(task, task.DueAt)
	send(task, Failed, task.DueAt)
	if task.State != Dead {
		t.Errorf("exhausted: %s", task.State)
	}
	if v, fx := send(task, Turn, task.DueAt); v.Code != fault.Stale || fx != (Effects{}) {
		t.Errorf("of one that ended: %+v", v)
	}
}
