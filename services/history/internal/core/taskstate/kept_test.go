package taskstate

import (
	"reflect"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// pinning is a running task whose worker may try again in place for so long, with waits of a second.
func pinning(pinnedForMS int64) *Task {
	return under(func(p *Policy) {
		p.MaxAttempts, p.Jitter, p.Backoff, p.PinnedForMS = 9, JitterNone, 1, pinnedForMS
	})
}

// failKept is a failure whose worker would try again in place.
func failKept(t *Task, now int64) (Verdict, Effects) {
	return Apply(t, &Event{Kind: Failed, ID: t.ID, Fence: t.Token(), Message: "m", ErrType: "e", Keep: true, Failures: t.Failures}, now)
}

// TestAWorkerTriesAgainInPlace: the attempt goes on under its token, holds its slots, and has the time of a new one.
func TestAWorkerTriesAgainInPlace(t *testing.T) {
	task := pinning(5_000)
	task.Lost = 3
	token := task.Token()
	v, fx := failKept(task, t0+100)
	want := Verdict{RetryAt: t0 + 1_100, Failures: 1, LeaseUntil: t0 + 3_100, DeadlineAt: t0 + 11_100}
	if v != want || fx != (Effects{}) || task.State != Running || task.Token() != token {
		t.Fatalf("%+v, %+v, %s", v, fx, task.State)
	}
	if task.Failures != 1 || task.Lost != 0 || task.ErrType != "e" || task.ErrMessage != "m" || task.DueAt != t0+1_100 || task.WakeAt() != t0+3_100 || task.Attempt.Ended != 0 {
		t.Errorf("%+v", task)
	}
	if got, grants := task.Attempts(), task.Grants(); got != 2 || grants != 1 {
		t.Errorf("%d attempts in %d grants", got, grants)
	}
	if last := task.Steps[len(task.Steps)-1]; last.Kind != StepFailed || !last.Kept || last.DueAt != t0+1_100 || last.Grant != 1 {
		t.Errorf("its history says %+v", last)
	}
	if v, _ := send(task, Succeeded, t0+1_200); v.Code != "" || task.State != Completed || task.Kept() != (Kept{Tries: 1}) {
		t.Errorf("%+v, %s, %+v", v, task.State, task.Kept())
	}
}

// TestWhenAnAttemptIsNotKept: what decides today is asked first, and then whether the worker wants it, no rate covers the start, and the wait is within the time.
func TestWhenAnAttemptIsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		pinnedForMS int64
		change      func(*Task, *Event)
		want        State
	}{
		"kept":                            {5_000, func(*Task, *Event) {}, Running},
		"kept to its last instant":        {1_000, func(*Task, *Event) {}, Running},
		"its policy allows none":          {0, func(*Task, *Event) {}, Backoff},
		"past its time":                   {999, func(*Task, *Event) {}, Backoff},
		"its worker does not want it":     {5_000, func(_ *Task, e *Event) { e.Keep = false }, Backoff},
		"its worker wants another time":   {5_000, func(_ *Task, e *Event) { e.DelayMS = 5_001 }, Backoff},
		"or one within":                   {5_000, func(_ *Task, e *Event) { e.DelayMS = 5_000 }, Running},
		"longer than history waits":       {60_000, func(_ *Task, e *Event) { e.DelayMS = ParkAfterMS + 1 }, Running},
		"a rate covers its start":         {5_000, func(task *Task, _ *Event) { task.Attempt.Nonce = ids.Nonce(9, false, true) }, Backoff},
		"it is cancelled":                 {5_000, func(task *Task, _ *Event) { task.CancelRequested = true }, Cancelled},
		"it failed for good":              {5_000, func(_ *Task, e *Event) { e.NonRetryable = true }, Dead},
		"it is out of attempts":           {5_000, func(task *Task, _ *Event) { task.Policy.MaxAttempts = 1 }, Dead},
		"its error type is the last":      {5_000, func(task *Task, _ *Event) { task.Policy.Rules = &Rules{NonRetryable: []string{"e"}} }, Dead},
		"it was delivered too often":      {5_000, func(task *Task, _ *Event) { task.Policy.MaxDeliveries = 1 }, Dead},
		"no time is left for another try": {5_000, func(task *Task, _ *Event) { task.Extra = &Extra{Expiry: Expiry{FinishBy: t0 + 1_100}} }, Lapsed},
		"it is put off":                   {5_000, func(_ *Task, e *Event) { e.Snooze, e.DelayMS = true, 10 }, Backoff},
		"another wait for its error type": {5_000, func(task *Task, _ *Event) {
			task.Policy.Rules = &Rules{ByError: []ErrorRule{{ErrType: "e", InitialIntervalMS: 5_001}}}
		}, Backoff},
	} {
		task := pinning(c.pinnedForMS)
		e := Event{Kind: Failed, ID: task.ID, Message: "m", ErrType: "e", Keep: true}
		c.change(task, &e)
		e.Fence = task.Token()
		v, fx := Apply(task, &e, t0+100)
		kept := c.want == Running
		if v.Code != "" || task.State != c.want || (v.RetryAt > 0) != kept || (fx.Release == nil) != kept || (task.Attempt.Ended == 0) != kept || (task.Kept() == Kept{}) == kept {
			t.Errorf("%s: %s, %+v, %+v, %+v", name, task.State, v, fx, task.Kept())
		}
		if s := task.Steps[2]; s.Kept != kept {
			t.Errorf("%s: its history says %+v", name, s)
		}
	}
}

// TestThePinEndsWithItsTime counts from the first failure of the attempt, and the next attempt begins another one.
func TestThePinEndsWithItsTime(t *testing.T) {
	task := pinning(2_500)
	var states []State
	now := t0 + 100
	for range 3 {
		failKept(task, now)
		states = append(states, task.State)
		now = task.DueAt
	}
	if want := []State{Running, Running, Backoff}; !slices.Equal(states, want) || task.Kept() != (Kept{Tries: 2}) || task.Failures != 3 {
		t.Fatalf("%v, %+v, %d failures", states, task.Kept(), task.Failures)
	}
	grab(task, now)
	if failKept(task, now); task.State != Running || task.Kept() != (Kept{Since: now, Tries: 3}) || task.Attempts() != 5 {
		t.Errorf("%s, %+v, %d attempts", task.State, task.Kept(), task.Attempts())
	}
}

// TestI4_ARepeatedFailureIsCountedOnce: by the failures that its worker knew of, as long as the attempt lasts and after it.
func TestI4_ARepeatedFailureIsCountedOnce(t *testing.T) {
	task := pinning(2_500)
	first := Event{Kind: Failed, ID: task.ID, Fence: task.Token(), Keep: true}
	v, _ := Apply(task, &first, t0+100)
	before := *task
	if again, fx := Apply(task, &first, t0+200); again != v || fx != (Effects{}) || !reflect.DeepEqual(*task, before) {
		t.Fatalf("%+v, then %+v, %+v", v, again, fx)
	}
	second := first
	second.Failures = 1
	after, _ := Apply(task, &second, t0+1_200)
	for _, e := range []*Event{&first, &second} { // the first one may come late
		if again, _ := Apply(task, e, t0+1_300); again != after || task.Failures != 2 {
			t.Errorf("%+v: %+v, want %+v, %d failures", e, again, after, task.Failures)
		}
	}
	third := second
	third.Failures = 2
	if last, fx := Apply(task, &third, t0+2_300); last.RetryAt != 0 || task.State != Backoff || fx.Release == nil {
		t.Fatalf("%+v, %s", last, task.State)
	}
	for _, e := range []*Event{&first, &second, &third} {
		if again, _ := Apply(task, e, t0+2_400); again != (Verdict{}) || task.Failures != 3 {
			t.Errorf("%+v: %+v, %d failures", e, again, task.Failures)
		}
	}
	// A cancel that came since is reported, so that its worker need not wait.
	task = pinning(2_500)
	failKept(task, t0+100)
	send(task, Cancel, t0+200)
	first.Fence = task.Token()
	if again, _ := Apply(task, &first, t0+300); !again.CancelRequested || again.RetryAt == 0 {
		t.Errorf("after a cancel: %+v", again)
	}
}

// TestHowAKeptAttemptEnds: like any other that runs. A worker that is lost while it waits costs no further failure, and the task is ready at once.
func TestHowAKeptAttemptEnds(t *testing.T) {
	for name, c := range map[string]struct {
		ev       Event
		at       int64
		want     State
		failures int32
	}{
		"silent past its heartbeats": {Event{Kind: Expired}, 3_100, Ready, 1},
		"not before":                 {Event{Kind: Expired}, 3_099, Running, 1},
		"silent by its signs":        {Event{Kind: Expired, SilentLease: t0 + 3_100}, 200, Ready, 1},
		"it was heard since":         {Event{Kind: Expired, SilentLease: t0 + 2_000}, 200, Running, 1},
		"handed back":                {Event{Kind: Released}, 200, Ready, 1},
		"failed for good":            {Event{Kind: Failed, NonRetryable: true, Failures: 1}, 1_200, Dead, 2},
		"given up":                   {Event{Kind: Failed, Failures: 1}, 1_200, Backoff, 2},
		"put off":                    {Event{Kind: Failed, Snooze: true, DelayMS: 10}, 1_200, Backoff, 1},
	} {
		task := pinning(5_000)
		failKept(task, t0+100)
		c.ev.ID, c.ev.Fence = task.ID, task.Token()
		_, fx := Apply(task, &c.ev, t0+c.at)
		if task.State != c.want || task.Failures != c.failures || (fx.Release == nil) != (c.want == Running) || (task.Kept().Since > 0) != (c.want == Running) {
			t.Errorf("%s: %s, %d failures, %+v, %+v", name, task.State, task.Failures, fx, task.Kept())
		}
	}
	// It was received: its worker has reported a failure.
	task := pinning(5_000)
	failKept(task, t0+100)
	if Apply(task, &Event{Kind: Expired, ID: task.ID, Fence: task.Token(), Undelivered: true}, t0+3_100); task.Lost != 1 {
		t.Errorf("it counts %d lost attempts", task.Lost)
	}
	task = pinning(5_000)
	failKept(task, t0+100)
	send(task, Cancel, t0+200)
	if _, fx := send(task, Released, t0+300); task.State != Cancelled || !fx.Finish || task.Failures != 1 {
		t.Errorf("cancelled while it waits: %s, %d failures", task.State, task.Failures)
	}
	if v := ApplyToEarlierStay(task, &Event{Kind: Failed, ID: task.ID, Keep: true}); v.Code == "" {
		t.Errorf("%+v", v)
	}
}

// TestALeaseOfAKeptAttemptCountsFromItsNextTry: a heartbeat in the wait does not shorten it.
func TestALeaseOfAKeptAttemptCountsFromItsNextTry(t *testing.T) {
	task := pinning(60_000)
	Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), Keep: true, DelayMS: 20_000}, t0)
	for at, want := range map[int64]int64{5_000: 22_000, 20_000: 22_000, 21_000: 23_000} {
		if v, _ := send(task, Heartbeat, t0+at); v.LeaseUntil != t0+want || v.DeadlineAt != t0+30_000 {
			t.Errorf("a heartbeat at +%d: %+v", at, v)
		}
	}
	// Its task's time cuts it, as any attempt.
	task = pinning(60_000)
	task.Extra = &Extra{Expiry: Expiry{FinishBy: t0 + 4_000}}
	if v, _ := failKept(task, t0); v.DeadlineAt != t0+4_000 {
		t.Errorf("%+v", v)
	}
	if send(task, Heartbeat, t0+3_000); task.WakeAt() != t0+4_000 {
		t.Errorf("until +%d", task.WakeAt()-t0)
	}
	if send(task, Expired, t0+4_000); task.State != Lapsed {
		t.Errorf("%s", task.State)
	}
}

// TestAKeptAttemptIsUpdated like any other that runs: times count from when the next try begins.
func TestAKeptAttemptIsUpdated(t *testing.T) {
	update := func(task *Task, u Update, at int64) {
		Apply(task, &Event{Kind: Changed, ID: task.ID, Update: &u, Seq: 50}, at)
	}
	task := pinning(60_000)
	failKept(task, t0)
	update(task, Update{Policy: &Policy{StartToCloseMS: 500, PinnedForMS: 1_500}}, t0+100)
	if task.Attempt.DeadlineAt != t0+1_500 || task.Policy.PinnedForMS != 1_500 {
		t.Errorf("until +%d, for %d ms", task.Attempt.DeadlineAt-t0, task.Policy.PinnedForMS)
	}
	if s := task.Steps[len(task.Steps)-1]; s.Message != "start_to_close_ms, retry" {
		t.Errorf("its history says %q", s.Message)
	}
	if failKept(task, t0+1_000); task.State != Backoff {
		t.Errorf("%s past the time that it has now", task.State)
	}
	task = pinning(60_000)
	task.Extra = &Extra{Expiry: Expiry{FinishWithinMS: 4_000, FinishBy: t0 + 4_000}}
	failKept(task, t0)
	if update(task, Update{FinishWithinMS: 60_000}, t0+100); task.Attempt.DeadlineAt != t0+11_000 {
		t.Errorf("until +%d", task.Attempt.DeadlineAt-t0)
	}
}

// TestAKeptAttemptThatIsHandedBackWasADelivery: its worker has begun it, and reported that it failed.
func TestAKeptAttemptThatIsHandedBackWasADelivery(t *testing.T) {
	task := pinning(60_000)
	task.Policy.MaxDeliveries = 2
	now := t0 + 100
	failKept(task, now)
	if send(task, Released, now+100); task.State != Ready || task.Failures != 1 {
		t.Fatalf("%s after %d failures", task.State, task.Failures)
	}
	grab(task, now+200)
	if failKept(task, now+300); task.State != Dead || task.ErrType != maxDeliveriesType || task.Grants() != 2 {
		t.Errorf("%s of %q after %d grants", task.State, task.ErrType, task.Grants())
	}
}

// TestAFailureOfAnotherAttemptIsNoRepeat: that of the attempt before, which was kept too, is late; and the first one of an attempt counts, whatever its worker says
// that it knew.
func TestAFailureOfAnotherAttemptIsNoRepeat(t *testing.T) {
	task := pinning(60_000)
	late := Event{Kind: Failed, ID: task.ID, Fence: task.Token(), Keep: true}
	Apply(task, &late, t0+100)
	send(task, Released, t0+200)
	grab(task, t0+300)
	e := Event{Kind: Failed, ID: task.ID, Fence: task.Token(), Keep: true} // it knew of one
	if v, _ := Apply(task, &e, t0+400); v.Failures != 2 || task.Failures != 2 || v.RetryAt != t0+1_400 {
		t.Fatalf("%+v after %d failures", v, task.Failures)
	}
	if v, fx := Apply(task, &late, t0+500); v.Code != fault.Stale || v.RetryAt != 0 || fx != (Effects{}) || task.Failures != 2 {
		t.Errorf("of the attempt before: %+v, %d failures", v, task.Failures)
	}
}
