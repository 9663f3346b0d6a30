package taskstate

import (
	"reflect"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// TestTheAttemptOfASilentWorkerIsLost before its lease is over, and as with any lost attempt nothing is counted but the delivery, unless the
// policy says so. A heartbeat that came between, another attempt and a log that took it too late leave it as it is.
func TestTheAttemptOfASilentWorkerIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(t *Task, e *Event)
		at       int64
		want     State
		code     fault.Code
		failures int32
		lost     int16
	}{
		"at once":              {func(*Task, *Event) {}, t0 + 1, Ready, "", 0, 1},
		"with failures before": {func(t *Task, _ *Event) { t.Failures = 2 }, t0 + 1, Ready, "", 2, 1},
		"the last of a row":    {func(t *Task, _ *Event) { t.Lost = LostMax - 1 }, t0 + 1, Dead, "", 0, LostMax},
		"lost ones die":        {func(t *Task, _ *Event) { t.Policy.OnLost = LostDies }, t0 + 1, Dead, "", 1, 0},
		"lost ones fail":       {func(t *Task, _ *Event) { t.Policy.OnLost = LostFails }, t0 + 1, Backoff, "", 1, 0},
		"it was cancelled":     {func(t *Task, _ *Event) { t.CancelRequested = true }, t0 + 1, Cancelled, "", 0, 1},
		"not received":         {func(_ *Task, e *Event) { e.Undelivered = true }, t0 + 1, Ready, "", 0, 0},
		"just in time":         {func(_ *Task, e *Event) { e.NotAfter = t0 + 1 }, t0 + 1, Ready, "", 0, 1},
		"when its time is over": {
			func(t *Task, e *Event) { e.NotAfter = t.Attempt.DeadlineAt }, t0 + policy().StartToCloseMS, Ready, "", 0, 1,
		},
		"silent when its time is over": {func(*Task, *Event) {}, t0 + policy().StartToCloseMS, Ready, "", 0, 1},
		"too late":                     {func(_ *Task, e *Event) { e.NotAfter = t0 }, t0 + 1, Running, fault.FailedPrecondition, 0, 0},
		"another lease":                {func(_ *Task, e *Event) { e.SilentLease++ }, t0 + 1, Running, fault.FailedPrecondition, 0, 0},
		"an earlier lease":             {func(_ *Task, e *Event) { e.SilentLease-- }, t0 + 1<<40, Running, fault.FailedPrecondition, 0, 0},
		"another attempt":              {func(_ *Task, e *Event) { e.Fence.Version++ }, t0 + 1, Running, fault.Stale, 0, 0},
		"no silence":                   {func(_ *Task, e *Event) { e.SilentLease = 0 }, t0 + 1, Running, fault.FailedPrecondition, 0, 0},
	} {
		task := under(func(p *Policy) { p.MaxAttempts = 3 })
		e := &Event{Kind: Expired, ID: task.ID, Fence: task.Token(), SilentLease: task.WakeAt()}
		c.change(task, e)
		before := *task
		v, fx := Apply(task, e, c.at)
		if v.Code != c.code || task.State != c.want || task.Failures != c.failures || task.Lost != c.lost {
			t.Errorf("%s: %+v, %s, %d failures, %d lost", name, v, task.State, task.Failures, task.Lost)
		}
		if c.code != "" && (!reflect.DeepEqual(*task, before) || fx != (Effects{})) || c.code == "" && fx.Release == nil {
			t.Errorf("%s: effects %+v", name, fx)
		}
	}
}

func TestWhatIsKnownOfAWorker(t *testing.T) {
	if NewWorker("", "", 0) != nil {
		t.Error("something is known")
	}
	var none *Worker
	for w, want := range map[*Worker][3]string{none: {}, NewWorker("ann", "", 0): {"ann", "", "ann"}, NewWorker("", "x", 0): {"", "x", "/x"}, NewWorker("ann", "x", 0): {"ann", "x", "ann/x"}} {
		if got := [3]string{w.Name(), w.ID(), w.String()}; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
