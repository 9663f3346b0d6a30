package taskstate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// about is an event about an attempt of a task, of a full limit.
func about(t *Task, kind Kind, version uint32, readyBy int64) *Event {
	return &Event{Kind: kind, ID: t.ID, Fence: ids.Token{Position: t.Position, Version: version}, Message: "full", ReadyBy: readyBy}
}

// TestARejectEndsWhatWaits: a task that is ready for that attempt, and has been for long enough; and again, where the answer was lost. What runs,
// or waits for another attempt, is left alone.
func TestARejectEndsWhatWaits(t *testing.T) {
	task := in(Ready)
	for name, e := range map[string]*Event{
		"the attempt before": about(task, Reject, task.Version, task.ReadyAt),
		"a later attempt":    about(task, Reject, task.Version+2, task.ReadyAt),
		"another stay":       {Kind: Reject, ID: task.ID, Fence: ids.Token{Position: task.Position + 1, Version: task.Version + 1}, ReadyBy: task.ReadyAt},
	} {
		if v, fx := Apply(task, e, t0+5000); v.Code != fault.Stale || fx != (Effects{}) || task.State != Ready {
			t.Errorf("%s: %+v %+v", name, v, fx)
		}
	}
	if v, _ := Apply(task, about(task, Reject, task.Version+1, task.ReadyAt-1), t0+5000); v.Code != fault.FailedPrecondition {
		t.Errorf("it was ready later: %+v", v)
	}
	for range 2 {
		if v, _ := Apply(task, about(task, Reject, task.Version+1, task.ReadyAt), t0+5000); v.Code != "" || task.State != Cancelled || task.CancelReason != "full" {
			t.Errorf("%+v, it is %s", v, task.State)
		}
	}
	if v, _ := Apply(task, about(task, Reject, task.Version+2, task.ReadyAt), t0+5000); v.Code != fault.Stale {
		t.Errorf("of another attempt, when it has ended: %+v", v)
	}
	running := in(Running)
	for version := range running.Version + 2 {
		if v, _ := Apply(running, about(running, Reject, version, t0+5000), t0+5000); v.Code != fault.Stale || running.CancelRequested {
			t.Errorf("a reject of attempt %d: %+v", version, v)
		}
	}
	waiting := numbered(1)
	Load(waiting, t0)
	wait(waiting, t0)
	if v, _ := Apply(waiting, about(waiting, Reject, waiting.Version+1, waiting.DueAt), waiting.DueAt-1); v.Code != fault.FailedPrecondition {
		t.Errorf("the next attempt was not due: %+v", v)
	}
	if v, _ := Apply(waiting, about(waiting, Reject, waiting.Version+1, waiting.DueAt), waiting.DueAt); v.Code != "" || waiting.State != Cancelled {
		t.Errorf("%+v, it is %s", v, waiting.State)
	}
}

// TestADisplacedAttemptIsAskedToStop, and no other attempt of the task.
func TestADisplacedAttemptIsAskedToStop(t *testing.T) {
	task := in(Running)
	for _, version := range []uint32{task.Version - 1, task.Version + 1} {
		if v, _ := Apply(task, about(task, Displace, version, 0), t0); v.Code != fault.Stale || task.CancelRequested {
			t.Errorf("of attempt %d: %+v", version, v)
		}
	}
	elsewhere := about(task, Displace, task.Version, 0)
	elsewhere.Fence.Position++
	if v, _ := Apply(task, elsewhere, t0); v.Code != fault.Stale || task.CancelRequested {
		t.Errorf("of another stay: %+v", v)
	}
	if v, _ := Apply(task, about(task, Displace, task.Version, 0), t0); v.Code != "" || !task.CancelRequested || task.State != Running {
		t.Errorf("%+v, it is %s", v, task.State)
	}
	ready := in(Ready)
	if v, _ := Apply(ready, about(ready, Displace, ready.Version, 0), t0); v.Code != fault.Stale || ready.State != Ready {
		t.Errorf("of one that does not run: %+v", v)
	}
}
