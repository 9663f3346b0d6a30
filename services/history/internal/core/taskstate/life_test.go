package taskstate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// numbered is a task that differs from others in its id only.
func numbered(n uint64) *Task {
	t := fresh()
	t.ID = ids.NewTaskID(time.UnixMilli(t0), 1, n)
	return t
}

// grab grants the next attempt to a worker.
func grab(t *Task, now int64) Verdict {
	v, _ := Apply(t, &Event{
		Kind: Started, ID: t.ID, Worker: NewWorker("w", "", 0), Limits: NewPath("type/send"),
		Fence: ids.Token{Position: t.Position, Version: t.Version + 1, Nonce: 9},
	}, now)
	return v
}

// send applies an event of the holder.
func send(t *Task, kind Kind, now int64) (Verdict, Effects) {
	return Apply(t, &Event{Kind: kind, ID: t.ID, Fence: t.Token()}, now)
}

// wait fails a running task and returns for how long.
func wait(t *Task, now int64) int64 {
	grab(t, now)
	send(t, Failed, now)
	return t.DueAt - now
}

// steps spells a history: kind, time after t0, grant, worker, message, due.
func steps(t *Task) string {
	var all []string
	for _, s := range t.Steps {
		due := int64(0)
		if s.DueAt > 0 {
			due = s.DueAt - t0
		}
		all = append(all, fmt.Sprintf("%d@%d/%d %s%s%s>%d", s.Kind, s.At-t0, s.Grant, s.Worker, s.Message, s.ErrType, due))
	}
	return strings.Join(all, "; ")
}

func wantSteps(t *testing.T, task *Task, want string) {
	t.Helper()
	if got := steps(task); got != want {
		t.Errorf("the history is\n%s, want\n%s", got, want)
	}
}

// Owners of two builds apply one log, so the waits are part of its meaning.
func TestI3_WaitsBetweenAttemptsAreTheSameForEveryOwner(t *testing.T) {
	task := numbered(42)
	task.Policy.MaxAttempts = 9
	var got []int64
	now := t0
	for range 3 {
		got = append(got, wait(task, now))
		now = task.DueAt
	}
	if want := []int64{1098, 4268, 15216}; !slices.Equal(got, want) {
		t.Fatalf("waits of %v ms, want %v", got, want)
	}
}

func TestWaitsGrowUpToTheirLimit(t *testing.T) {
	for _, c := range []struct {
		name               string
		initial, limit     int64
		backoff            float64
		failures           int32
		low, high, exactly int64
	}{
		{"first", 1000, 9000, 2, 0, 900, 1100, 0},
		{"second", 1000, 9000, 2, 1, 1800, 2200, 0},
		{"third", 1000, 9000, 2, 2, 3600, 4400, 0},
		{"limit", 1000, 3000, 2, 2, 2400, 3000, 0},
		{"beyond all numbers", 1000, 3000, 1e300, 9, 2400, 3000, 0},
		{"no number", 0, 3000, math.Inf(1), 9, 2400, 3000, 0},
		{"at least something", 0, 3000, 1, 0, 0, 0, 1},
	} {
		task := fresh()
		task.Policy.MaxAttempts = 100
		task.Policy.InitialIntervalMS, task.Policy.MaxIntervalMS, task.Policy.Backoff = c.initial, c.limit, c.backoff
		task.Failures = c.failures
		got := wait(task, t0)
		if c.exactly > 0 && got != c.exactly || c.exactly == 0 && (got < c.low || got > c.high) {
			t.Errorf("%s: %d ms", c.name, got)
		}
	}
}

func TestTheWorkersDelayReplacesThePolicys(t *testing.T) {
	for delay, want := range map[int64]int64{1: 1, 5000: 5000, ParkAfterMS: ParkAfterMS} {
		task := in(Running)
		if _, fx := Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), DelayMS: delay}, t0+7); fx.Park || task.State != Backoff {
			t.Errorf("a wait of %d ms: %s, %+v", delay, task.State, fx)
		}
		if got := task.DueAt - t0 - 7; got != want || task.WakeAt() != task.DueAt {
			t.Errorf("delay %d: due after %d", delay, got)
		}
	}
	task := in(Running)
	if Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), DelayMS: -5}, t0); task.DueAt < t0+900 {
		t.Errorf("a negative delay: due after %d", task.DueAt-t0)
	}
}

func TestALongWaitIsParkedAndComesBack(t *testing.T) {
	task := in(Running)
	_, fx := Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), Message: "m", ErrType: "e", DelayMS: ParkAfterMS + 1}, t0+5)
	if task.State != Waiting || fx != (Effects{Park: true, Release: task.Attempt.Limits, ReleaseVersion: 1}) || task.Parkings != 1 || task.WakeAt() != 0 {
		t.Fatalf("%s, parked %d times, %+v", task.State, task.Parkings, fx)
	}
	if fx := Load(task, t0+20_000); task.State != Ready || fx != (Effects{Trigger: true}) {
		t.Fatalf("%s, %+v", task.State, fx)
	}
	wantSteps(t, task, "1@0/0 >0; 4@0/1 w>0; 6@5/1 wme>10006; 2@5/0 >10006; 3@20000/0 >0")
}

func TestATaskDueLaterIsParkedAtOnce(t *testing.T) {
	for _, c := range []struct {
		due  int64
		want State
		fx   Effects
	}{{0, Ready, Effects{Trigger: true}}, {t0, Ready, Effects{Trigger: true}}, {t0 + 1, Waiting, Effects{Park: true}}} {
		task := &Task{ID: ids.NewTaskID(time.UnixMilli(t0-3), 1, 1), Policy: policy(), DueAt: c.due}
		if fx := Load(task, t0); task.State != c.want || fx != c.fx {
			t.Errorf("due at +%d: %s, %+v", c.due-t0, task.State, fx)
		}
		if first := task.Steps[0]; first.Kind != StepSubmitted || first.At != t0 {
			t.Errorf("due at +%d: the history begins with %+v", c.due-t0, first)
		}
	}
}

func TestWakeWaitsForTheTime(t *testing.T) {
	task := in(Backoff)
	if task.WakeAt() != task.DueAt || task.ReadyAt != task.DueAt {
		t.Errorf("due at %d, ready at %d", task.DueAt, task.ReadyAt)
	}
	// An attempt may begin when it is due, with a trigger or without.
	if task := in(Backoff); grab(task, task.DueAt-1).Granted || !grab(task, task.DueAt).Granted {
		t.Error("the attempt began at the wrong time")
	}
}

func TestTheLastFailureIsTheEnd(t *testing.T) {
	task := fresh()
	task.Policy.MaxAttempts = 2
	if wait(task, t0); task.State != Backoff || task.Failures != 1 {
		t.Fatalf("%s after %d failures", task.State, task.Failures)
	}
	due := task.DueAt
	grab(task, due)
	_, fx := Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), Message: "m", ErrType: "e"}, due+3)
	if task.State != Dead || task.FinishedAt != due+3 || fx != (Effects{Finish: true, Release: task.Attempt.Limits, ReleaseVersion: 2}) {
		t.Fatalf("%s at %d, %+v", task.State, task.FinishedAt-t0, fx)
	}
	at := due - t0
	wantSteps(t, task, fmt.Sprintf("1@0/0 >0; 4@0/1 w>0; 6@0/1 w>%d; 4@%d/2 w>0; 6@%d/2 wme>0; 12@%d/0 me>0", at, at, at+3, at+3))
}

func TestCompletedForgetsTheErrorsBefore(t *testing.T) {
	task := fresh()
	grab(task, t0)
	Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), Message: "m", ErrType: "e", DelayMS: 10}, t0)
	grab(task, t0+10)
	_, fx := Apply(task, &Event{Kind: Succeeded, ID: task.ID, Fence: task.Token(), Data: Blob{Data: []byte("r"), Encoding: 2}}, t0+20)
	if task.State != Completed || task.ErrMessage+task.ErrType != "" || string(task.Result.Data) != "r" || task.FinishedAt != t0+20 {
		t.Errorf("%s at %d, %q, result %q", task.State, task.FinishedAt-t0, task.ErrMessage+task.ErrType, task.Result.Data)
	}
	if fx != (Effects{Finish: true, Release: task.Attempt.Limits, ReleaseVersion: 2}) {
		t.Errorf("%+v", fx)
	}
	wantSteps(t, task, "1@0/0 >0; 4@0/1 w>0; 6@0/1 wme>10; 4@10/2 w>0; 5@20/2 w>0")
}

func TestTheLeaseIsTheEarlierOfSilenceAndDeadline(t *testing.T) {
	for _, c := range []struct{ beat, attempt, want int64 }{
		{0, 10_000, 10_000}, {2_000, 10_000, 2_000}, {10_000, 10_000, 10_000}, {20_000, 10_000, 10_000},
	} {
		task := fresh()
		task.Policy.HeartbeatTimeoutMS, task.Policy.StartToCloseMS = c.beat, c.attempt
		if v := grab(task, t0+1); v.LeaseUntil != t0+1+c.want || task.WakeAt() != v.LeaseUntil {
			t.Errorf("beats of %d, attempts of %d: %+v", c.beat, c.attempt, v)
		}
		// A beat is fine where none is needed.
		v, _ := send(task, Heartbeat, t0+2)
		want := t0 + 1 + c.attempt
		if c.beat > 0 {
			want = min(want, t0+2+c.beat)
		}
		if v.LeaseUntil != want {
			t.Errorf("beats of %d, attempts of %d: %+v after a beat", c.beat, c.attempt, v)
		}
	}
}

func TestABeatWithoutProgressKeepsTheLast(t *testing.T) {
	task := in(Running)
	Apply(task, &Event{Kind: Heartbeat, ID: task.ID, Fence: task.Token(), Data: Blob{Data: []byte("half")}}, t0+1)
	send(task, Heartbeat, t0+2)
	testkit.Equal(t, "progress", string(task.Attempt.Progress.Data), "half")
}

// A failure is a sign of life: the count of lost grants starts again.
func TestAFailureEndsARowOfLostGrants(t *testing.T) {
	task := fresh()
	grab(task, t0)
	send(task, Expired, t0+2_000)
	grab(task, t0+2_000)
	Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), DelayMS: 10}, t0+2_001)
	if task.Lost != 0 || task.Failures != 1 {
		t.Fatalf("%d lost, %d failures", task.Lost, task.Failures)
	}
	wantSteps(t, task, "1@0/0 >0; 4@0/1 w>0; 8@2000/1 w>0; 4@2000/2 w>0; 6@2001/2 w>2011")
}

func TestAHandedBackTaskIsReadyAtOnce(t *testing.T) {
	task := in(Running)
	_, fx := Apply(task, &Event{Kind: Released, ID: task.ID, Fence: task.Token(), Message: "full"}, t0+4)
	if task.State != Ready || fx != (Effects{Trigger: true, Release: task.Attempt.Limits, ReleaseVersion: 1}) || task.Failures != 0 || task.Lost != 0 {
		t.Fatalf("%s, %+v", task.State, fx)
	}
	wantSteps(t, task, "1@0/0 >0; 4@0/1 w>0; 9@4/1 wfull>0")
	testkit.Equal(t, "trigger", task.Trigger(), (ids.Trigger{ID: task.ID, Version: 2, Position: task.Position}))
}

func TestACancelEndsTheTaskAfterTheAttempt(t *testing.T) {
	for _, kind := range []Kind{Released, Failed, Expired} {
		task := in(Running)
		Apply(task, &Event{Kind: Cancel, ID: task.ID, Message: "first"}, t0+1)
		if v, fx := Apply(task, &Event{Kind: Cancel, ID: task.ID, Message: "second"}, t0+2); !v.CancelRequested || fx != (Effects{}) {
			t.Errorf("%s: a second cancel: %+v, %+v", kind, v, fx)
		}
		fence := task.Token()
		v, fx := send(task, kind, t0+5_000)
		if again, _ := Apply(task, &Event{Kind: kind, ID: task.ID, Fence: fence}, t0+6_000); kind != Expired && again != v {
			t.Errorf("%s: %+v, and asked again %+v", kind, v, again)
		}
		if task.State != Cancelled || fx != (Effects{Finish: true, Release: task.Attempt.Limits, ReleaseVersion: 1}) || task.CancelReason != "first" {
			t.Errorf("%s: %s, %+v, %q", kind, task.State, fx, task.CancelReason)
		}
		if last := task.Steps[len(task.Steps)-1]; last.Kind != StepCancelled || last.At != t0+5_000 || last.Message != "first" {
			t.Errorf("%s: the history ends with %+v", kind, last)
		}
		if asked := task.Steps[2]; asked.Kind != StepCancelRequested || asked.At != t0+1 || asked.Grant != 1 || asked.Message != "first" {
			t.Errorf("%s: the history has %+v", kind, asked)
		}
	}
	// No one hears of a cancel that came after what it asks about.
	late := in(Running)
	fence := late.Token()
	v, _ := send(late, Failed, t0+1)
	Apply(late, &Event{Kind: Cancel, ID: late.ID}, t0+2)
	if again, _ := Apply(late, &Event{Kind: Failed, ID: late.ID, Fence: fence}, t0+3); again != v || late.State != Cancelled {
		t.Errorf("%s: %+v, and asked again %+v", late.State, v, again)
	}
	// What was done is done.
	task := in(Running)
	Apply(task, &Event{Kind: Cancel, ID: task.ID}, t0+1)
	if send(task, Succeeded, t0+2); task.State != Completed {
		t.Errorf("%s", task.State)
	}
}

func TestAGrabNeedsThePresentTrigger(t *testing.T) {
	task := fresh()
	for _, fence := range []ids.Token{
		{Position: task.Position, Version: 0},
		{Position: task.Position, Version: 2},
		{Position: task.Position + 1, Version: 1},
		{Version: 1},
	} {
		v, fx := Apply(task, &Event{Kind: Started, ID: task.ID, Fence: fence}, t0)
		if v.Granted || v.Code != fault.Stale || fx != (Effects{}) || task.State != Ready {
			t.Errorf("%+v: %+v", fence, v)
		}
	}
}

// I4: a repeated request gets the verdict of the first one; another's does not.
func TestI4_RepeatsAreRecognised(t *testing.T) {
	for _, kind := range []Kind{Succeeded, Failed, Released} {
		task := in(Running)
		fence := task.Token()
		send(task, kind, t0)
		for _, c := range []struct {
			kind  Kind
			fence ids.Token
			code  fault.Code
		}{
			{kind, fence, ""},
			{kind, ids.Token{Position: fence.Position, Version: fence.Version, Nonce: fence.Nonce + 1}, fault.Stale},
			{Heartbeat, fence, fault.Stale},
		} {
			if v, fx := Apply(task, &Event{Kind: c.kind, ID: task.ID, Fence: c.fence}, t0+1); v.Code != c.code || fx != (Effects{}) {
				t.Errorf("%s, then %s of %+v: %+v", kind, c.kind, c.fence, v)
			}
		}
		for _, other := range []Kind{Succeeded, Failed, Released} {
			if v, _ := Apply(task, &Event{Kind: other, ID: task.ID, Fence: fence}, t0+1); (v.Code == "") != (other == kind) {
				t.Errorf("%s, then %s: %+v", kind, other, v)
			}
		}
	}
	// An outcome of a task that never ran is none.
	task := fresh()
	if v, _ := Apply(task, &Event{Kind: 0, ID: task.ID, Fence: task.Token()}, t0); v.Code == "" {
		t.Errorf("an event without a kind: %+v", v)
	}
	if v, _ := send(task, Released, t0); v.Code != fault.Stale {
		t.Errorf("an outcome before the first grant: %+v", v)
	}
	running := in(Running)
	fence := running.Token()
	if v, _ := Apply(running, &Event{Kind: Started, ID: running.ID, Fence: fence}, t0+1); !v.Granted || v.LeaseUntil != running.WakeAt() {
		t.Errorf("a repeated grab: %+v", v)
	}
	fence.Nonce++
	if v, _ := Apply(running, &Event{Kind: Started, ID: running.ID, Fence: fence}, t0+1); v.Granted || v.Code != fault.Stale {
		t.Errorf("another poll's grab: %+v", v)
	}
}

func TestRefusalsSayWhy(t *testing.T) {
	for _, c := range []struct {
		in   State
		kind Kind
		code fault.Code
		text string
	}{
		{Completed, Cancel, fault.FailedPrecondition, "the task is completed"},
		{Dead, Started, fault.Stale, "the task is dead"},
		{Waiting, Started, fault.Stale, "the task is waiting"},
		{Running, Started, fault.Stale, "granted to another poll"},
		{Waiting, Heartbeat, fault.Stale, "the attempt is over: the task is waiting"},
		{Cancelled, Succeeded, fault.Stale, "the attempt is over: the task is cancelled"},
		{Ready, Heartbeat, fault.Stale, "the attempt is over: the task is ready"},
		{Ready, Fence, fault.Internal, "unknown kind of event"},
		{Running, Fence, fault.Internal, "unknown kind of event"},
		{Ready, Displace + 1, fault.Internal, "unknown kind of event"},
		{Running, 255, fault.Internal, "unknown kind of event"},
	} {
		task := in(c.in)
		v, fx := Apply(task, &Event{Kind: c.kind, ID: task.ID, Fence: ids.Token{Nonce: 1}}, t0)
		if v.Code != c.code || v.Message != c.text || fx != (Effects{}) {
			t.Errorf("%s × %s: %+v", c.in, c.kind, v)
		}
	}
}

// TestI4_AnEarlierStayIsOver: an event of the stay before changes nothing; the outcome that
// ended that stay gets its verdict again until an attempt begins.
func TestI4_AnEarlierStayIsOver(t *testing.T) {
	task := in(Waiting)
	before := task.Token()
	task.Before, task.Position = task.Position, ids.NewPosition(99, 3)
	Load(task, task.DueAt)
	for _, c := range []struct {
		what string
		ev   Event
		code fault.Code
	}{
		{"repeated", Event{Kind: Failed, Fence: before}, ""},
		{"another outcome", Event{Kind: Succeeded, Fence: before}, fault.Stale},
		{"handed back", Event{Kind: Released, Fence: before}, fault.Stale},
		{"a heartbeat", Event{Kind: Heartbeat, Fence: before}, fault.Stale},
		{"another attempt", Event{Kind: Failed, Fence: ids.Token{Position: before.Position, Version: before.Version, Nonce: 1}}, fault.Stale},
		{"a foreign domain", Event{Kind: Failed, Fence: before, Domain: "media"}, fault.NotFound},
	} {
		if v := ApplyToEarlierStay(task, &c.ev); v.Code != c.code {
			t.Errorf("%s: %+v", c.what, v)
		}
	}
	grab(task, task.DueAt)
	if v := ApplyToEarlierStay(task, &Event{Kind: Failed, Fence: before}); v.Code != fault.Stale {
		t.Errorf("repeated after another attempt began: %+v", v)
	}
}
