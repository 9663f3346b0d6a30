package taskstate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// expiring is a task with time limits, due after so many ms and read at t0.
func expiring(x Expiry, due int64) *Task {
	t := fresh()
	t.Steps, t.Extra = nil, &Extra{Expiry: x}
	if due > 0 {
		t.DueAt = t0 + due
	}
	Load(t, t0)
	return t
}

// TestTimeCountsFromWhenATaskIsDue, or from when the log had it; and what comes back from the timer store has what it had.
func TestTimeCountsFromWhenATaskIsDue(t *testing.T) {
	for due, want := range map[int64]Expiry{
		0:    {StartWithinMS: 5, FinishWithinMS: 7, StartBy: t0 + 5, FinishBy: t0 + 7},
		1000: {StartWithinMS: 5, FinishWithinMS: 7, StartBy: t0 + 1005, FinishBy: t0 + 1007},
		-9:   {StartWithinMS: 5, FinishWithinMS: 7, StartBy: t0 + 5, FinishBy: t0 + 7},
	} {
		task := expiring(Expiry{StartWithinMS: 5, FinishWithinMS: 7}, due)
		if task.Expiry() != want {
			t.Errorf("due after %d: %+v", due, task.Expiry())
		}
		if due > 0 {
			if task.WakeAt() != 0 {
				t.Errorf("it is to be woken at %d while the timer store has it", task.WakeAt()-t0)
			}
			if Load(task, t0+9_000); task.Expiry() != want || task.WakeAt() != t0+1005 {
				t.Errorf("it came back late: %+v", task.Expiry())
			}
		}
	}
	if known := (Expiry{StartWithinMS: 5, FinishWithinMS: 7, StartBy: t0 + 1, FinishBy: t0 + 2}); expiring(known, 0).Expiry() != known {
		t.Error("a submit that says until when it has time gets another time")
	}
	if task := expiring(Expiry{FinishWithinMS: 7}, 0); task.Expiry().StartBy != 0 || task.WakeAt() != t0+7 {
		t.Errorf("without start_within: %+v", task.Expiry())
	}
	if task := fresh(); task.Expiry() != (Expiry{}) || task.LapsesAt() != 0 || task.WakeAt() != 0 {
		t.Error("without limits")
	}
	later, sooner := expiring(Expiry{StartWithinMS: 9, FinishWithinMS: 7}, 0), expiring(Expiry{StartWithinMS: 5, FinishWithinMS: 7}, 0)
	if later.LapsesAt() != t0+7 || sooner.LapsesAt() != t0+5 {
		t.Errorf("%d and %d", later.LapsesAt()-t0, sooner.LapsesAt()-t0)
	}
}

// TestOnlyTimeThatIsOverEndsATask, to the millisecond; and then no attempt begins, whether that was noticed or not.
func TestOnlyTimeThatIsOverEndsATask(t *testing.T) {
	task := expiring(Expiry{StartWithinMS: 500}, 0)
	if v, fx := send(task, Lapse, t0+499); v.Code != fault.FailedPrecondition || fx != (Effects{}) || task.State != Ready {
		t.Fatalf("early: %+v, %s", v, task.State)
	}
	if v := grab(task, t0+500); v.Code != fault.FailedPrecondition || v.Message != "the task has expired" || task.State != Ready || task.Version != 0 {
		t.Fatalf("granted when its time was over: %+v", v)
	}
	v, fx := send(task, Lapse, t0+500)
	if v.Code != "" || !fx.Finish || fx.Trigger || task.State != Lapsed || task.FinishedAt != t0+500 {
		t.Fatalf("%+v %+v %s", v, fx, task.State)
	}
	wantSteps(t, task, "1@0/0 >0; 13@500/0 it did not start in timestart_within>0")
	if v, _ := Apply(task, &Event{Kind: Cancel, ID: task.ID}, t0+501); v.Code != fault.FailedPrecondition || v.Message != "the task is expired" {
		t.Errorf("a cancel: %+v", v)
	}
	if v, _ := send(fresh(), Lapse, t0+1_000_000); v.Code != fault.FailedPrecondition {
		t.Errorf("without a limit: %+v", v)
	}
	if v := grab(expiring(Expiry{StartWithinMS: 500}, 0), t0+499); !v.Granted {
		t.Errorf("in time: %+v", v)
	}
	rival := expiring(Expiry{StartWithinMS: 500}, 0)
	if v, _ := Apply(rival, &Event{Kind: Lapse, ID: rival.ID, Fence: ids.Token{Position: rival.Position, Version: 1}}, t0+500); v.Code != fault.Stale {
		t.Errorf("another attempt's: %+v", v)
	}
}

// TestWhatHasBegunHasTimeToFinish: a failure or a silent worker counts as a start, a grant that was handed back does not.
func TestWhatHasBegunHasTimeToFinish(t *testing.T) {
	for name, c := range map[string]struct {
		event Event
		begun bool
	}{
		"failed":      {Event{Kind: Failed}, true},
		"lost":        {Event{Kind: Expired}, true},
		"handed back": {Event{Kind: Released}, false},
		"undelivered": {Event{Kind: Expired, Undelivered: true}, false},
	} {
		task := expiring(Expiry{StartWithinMS: 500, FinishWithinMS: 9_000}, 0)
		grab(task, t0)
		c.event.ID, c.event.Fence = task.ID, task.Token()
		Apply(task, &c.event, t0+2_000)
		want := t0 + 500
		if c.begun {
			want = t0 + 9_000
		}
		if task.LapsesAt() != want {
			t.Errorf("%s: it has time until +%d", name, task.LapsesAt()-t0)
		}
		if v, _ := send(task, Lapse, want); v.Code != "" || task.State != Lapsed {
			t.Errorf("%s: %+v", name, v)
		}
		if why := task.Steps[len(task.Steps)-1].ErrType; why != map[bool]string{true: "finish_within", false: "start_within"}[c.begun] {
			t.Errorf("%s: it expired for %s", name, why)
		}
	}
}

// TestAnAttemptEndsWithTheTimeOfItsTask, if not before; a worker that is done by then is in time.
func TestAnAttemptEndsWithTheTimeOfItsTask(t *testing.T) {
	task := expiring(Expiry{FinishWithinMS: 4_000}, 0)
	task.Policy.MaxAttempts = 1
	grab(task, t0+1)
	if task.Attempt.DeadlineAt != t0+4_000 {
		t.Fatalf("the deadline is +%d", task.Attempt.DeadlineAt-t0)
	}
	send(task, Heartbeat, t0+1_900)
	send(task, Heartbeat, t0+3_800)
	if _, fx := send(task, Expired, t0+4_000); task.State != Lapsed || !fx.Finish || fx.Release == nil || task.Failures != 1 {
		t.Fatalf("%s %+v", task.State, fx)
	}
	if task.ErrMessage != "the attempt exceeded finish_within" || task.ErrType != "timeout" {
		t.Errorf("the last failure: %q %q", task.ErrMessage, task.ErrType)
	}

	short := expiring(Expiry{FinishWithinMS: 60_000}, 0)
	grab(short, t0)
	if short.Attempt.DeadlineAt != t0+10_000 {
		t.Errorf("the deadline is +%d", short.Attempt.DeadlineAt-t0)
	}
	send(short, Heartbeat, t0+9_000)
	if send(short, Expired, t0+10_000); short.ErrMessage != "the attempt exceeded start_to_close (10s)" || short.State != Backoff {
		t.Errorf("%s: %q", short.State, short.ErrMessage)
	}

	done := expiring(Expiry{FinishWithinMS: 4_000}, 0)
	grab(done, t0)
	if v, _ := send(done, Succeeded, t0+5_000); v.Code != "" || done.State != Completed {
		t.Errorf("what the log has before the expiry counts: %+v", v)
	}
}

// TestAFailureThatLeavesNoTimeEndsTheTask: nothing waits for an attempt that would be refused. A failure for good, or
// of the last attempt, is a dead letter unless the time was over.
func TestAFailureThatLeavesNoTimeEndsTheTask(t *testing.T) {
	for name, c := range map[string]struct {
		delay, at int64
		final     bool
		attempts  int32
		cancelled bool
		want      State
	}{
		"in time":               {999, 1000, false, 3, false, Backoff},
		"too late":              {1000, 1000, false, 3, false, Lapsed},
		"parked too late":       {20_000, 1000, false, 3, false, Lapsed},
		"for good":              {0, 1000, true, 3, false, Dead},
		"the last":              {0, 1000, false, 1, false, Dead},
		"over, the last":        {0, 2000, false, 1, false, Lapsed},
		"over, for good":        {0, 2000, true, 1, false, Dead},
		"cancelled, when over":  {0, 2000, false, 3, true, Cancelled},
		"cancelled, for longer": {5000, 1000, false, 3, true, Cancelled},
	} {
		task := expiring(Expiry{FinishWithinMS: 2_000}, 0)
		task.Policy.MaxAttempts = c.attempts
		grab(task, t0)
		if c.cancelled {
			Apply(task, &Event{Kind: Cancel, ID: task.ID}, t0)
		}
		_, fx := Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), NonRetryable: c.final, DelayMS: c.delay}, t0+c.at)
		if task.State != c.want || fx.Finish != c.want.Finished() || fx.Park {
			t.Errorf("%s: %s %+v", name, task.State, fx)
		}
	}
	task := expiring(Expiry{FinishWithinMS: 2_000}, 0)
	grab(task, t0)
	Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), DelayMS: 3_000, Message: "boom"}, t0+1)
	wantSteps(t, task, "1@0/0 >0; 4@0/1 w>0; 6@1/1 wboom>0; 13@1/0 it was not completed in timefinish_within>0")
	if v, _ := Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), DelayMS: 3_000, Message: "boom"}, t0+1); v.Code != "" {
		t.Errorf("repeated: %+v", v)
	}
}

// TestAFailureWithoutTimeForAnother is in the history of the task, whose time is over then.
func TestAFailureWithoutTimeForAnother(t *testing.T) {
	task := fresh()
	task.Extra = &Extra{Expiry: Expiry{FinishBy: t0 + 1000}}
	grab(task, t0)
	send(task, Failed, t0+1000)
	n := len(task.Steps)
	if task.State != Lapsed || n < 2 || task.Steps[n-2].Kind != StepFailed || task.Steps[n-1].Kind != StepLapsed {
		t.Errorf("%s: %+v", task.State, task.Steps)
	}
}

// TestTheLastFailureOfADelivery is in the history of the task too, which was given to workers as often as it may.
func TestTheLastFailureOfADelivery(t *testing.T) {
	task := fresh()
	policy := *task.Policy
	policy.MaxAttempts, policy.MaxDeliveries = 9, 1
	task.Policy = &policy
	grab(task, t0)
	send(task, Failed, t0+5)
	n := len(task.Steps)
	if task.State != Dead || n < 2 || task.Steps[n-2].Kind != StepFailed || task.Steps[n-1].Kind != StepDead {
		t.Errorf("%s: %+v", task.State, task.Steps)
	}
}
