package taskstate

import "testing"

func snooze(t *Task, delayMS int64) (Verdict, Effects) {
	return Apply(t, &Event{Kind: Failed, ID: t.ID, Fence: t.Token(), Message: "not yet", DelayMS: delayMS, Snooze: true}, t0+1)
}

// TestASnoozeIsNoFailure: the task waits for as long as its worker asked, and nothing is counted but the delivery.
func TestASnoozeIsNoFailure(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(t *Task)
		delayMS int64
		want    State
		lost    int16
	}{
		"soon":                       {func(*Task) {}, 5_000, Backoff, 0},
		"later":                      {func(*Task) {}, ParkAfterMS + 1, Waiting, 0},
		"after its last failure":     {func(t *Task) { t.Failures = 2 }, 5_000, Backoff, 0},
		"after lost attempts":        {func(t *Task) { t.Lost = LostMax - 1 }, 5_000, Backoff, 1},
		"once more":                  {func(t *Task) { t.Policy.MaxDeliveries = 2 }, 5_000, Backoff, 0},
		"the last delivery":          {func(t *Task) { t.Policy.MaxDeliveries = 1 }, 5_000, Dead, 0},
		"it was cancelled":           {func(t *Task) { t.CancelRequested, t.Policy.MaxDeliveries = true, 1 }, 5_000, Cancelled, 0},
		"not in time":                {func(t *Task) { t.Extra = &Extra{Expiry: Expiry{FinishBy: t0 + 5_001}} }, 5_000, Lapsed, 0},
		"its time to begin is over":  {func(t *Task) { t.Extra = &Extra{Expiry: Expiry{StartBy: t0 + 1}} }, 5_000, Backoff, 0},
		"an engine that asks for no": {func(*Task) {}, 0, Backoff, 0},
	} {
		task := under(func(p *Policy) { p.MaxAttempts = 3 })
		c.change(task)
		failures := task.Failures
		v, fx := snooze(task, c.delayMS)
		if v.Code != "" || task.State != c.want || task.Failures != failures || task.Lost != c.lost || task.ErrType != "" && c.want != Dead {
			t.Errorf("%s: %+v, %s, %d failures, %d lost, %q", name, v, task.State, task.Failures, task.Lost, task.ErrType)
		}
		if fx.Release == nil || fx.Park != (c.want == Waiting) || fx.Finish != c.want.Finished() || v.CancelRequested != (c.want == Cancelled) {
			t.Errorf("%s: effects %+v", name, fx)
		}
		if due := t0 + 1 + max(1, c.delayMS); (c.want == Backoff || c.want == Waiting) && task.DueAt != due {
			t.Errorf("%s: due at %+d, want %+d", name, task.DueAt-t0, due-t0)
		}
		if s := task.Steps[2]; s.Kind != StepSnoozed || s.Message != "not yet" || s.Grant != 1 {
			t.Errorf("%s: its history says %+v", name, s)
		}
		before := *task
		if again, fx := snooze(task, c.delayMS); c.want != Waiting && (again != v || fx != (Effects{}) || task.State != before.State || len(task.Steps) != len(before.Steps)) {
			t.Errorf("%s: repeated, %+v, %+v", name, again, fx)
		}
	}
}

// TestASnoozedTaskHasNotBegun: start_within ends it, unless an attempt of it failed or was lost.
func TestASnoozedTaskHasNotBegun(t *testing.T) {
	for lost, want := range map[int16]int64{0: t0 + 100, 3: t0 + 9_000} {
		task := under(func(*Policy) {})
		task.Extra, task.Lost = &Extra{Expiry: Expiry{StartBy: t0 + 100, FinishBy: t0 + 9_000}}, lost
		snooze(task, 5)
		if got := task.LapsesAt(); got != want {
			t.Errorf("%d lost: it expires at %+d", lost, got-t0)
		}
	}
}
