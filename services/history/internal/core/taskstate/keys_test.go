package taskstate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// ofKey applies an operator's command about an order key.
func ofKey(t *Task, e Event, request, seq uint64, now int64) (Verdict, Effects) {
	e.ID, e.Domain, e.Seq, e.Message = t.ID, t.Domain, seq, "by ann"
	if e.Update == nil {
		e.Update = &Update{}
	}
	e.Update.Request = request
	return Apply(t, &e, now)
}

// first is the first task of the key a: it has its turn.
func first(blocks bool) *Task {
	task := fresh()
	task.Extra = (&Extra{Order: &Order{Key: "a", Blocks: blocks}}).LiesAt(7, 0)
	task.Policy = &Policy{MaxAttempts: 1, InitialIntervalMS: 1000, Backoff: 1, MaxIntervalMS: 1000, StartToCloseMS: 60_000}
	task.TakeTurn()
	return task
}

func blocked() *Task {
	task := first(true)
	grab(task, t0)
	Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), Message: "no route", ErrType: "network"}, t0+5)
	return task
}

// TestTheFirstTaskOfAKeyIsSkipped: it is a dead letter, for the reason that the operator gives; a repeat is answered alike.
func TestTheFirstTaskOfAKeyIsSkipped(t *testing.T) {
	for name, task := range map[string]*Task{"ready": first(false), "blocked": blocked()} {
		v, fx := ofKey(task, Event{Kind: Skipped, OrderKey: "a"}, 77, 9, t0+10)
		last := task.Steps[len(task.Steps)-1]
		if v != (Verdict{Revision: 2}) || !fx.Finish || task.State != Dead || last.Kind != StepDead || last.Message != "by ann" || task.FinishedAt != t0+10 {
			t.Errorf("%s: %+v %+v %s, %+v", name, v, fx, task.State, last)
		}
		if again, fx := ofKey(task, Event{Kind: Skipped, OrderKey: "a"}, 77, 12, t0+20); again != v || fx != (Effects{}) {
			t.Errorf("%s, repeated: %+v %+v", name, again, fx)
		}
		if v, fx := ofKey(task, Event{Kind: Skipped, OrderKey: "a"}, 78, 15, t0+20); v.Code != fault.FailedPrecondition || fx != (Effects{}) {
			t.Errorf("%s, by another request: %+v", name, v)
		}
	}
	task := blocked()
	if ofKey(task, Event{Kind: Skipped, OrderKey: "a"}, 77, 9, t0+10); task.ErrType != "network" || task.ErrMessage != "no route" {
		t.Errorf("one that has failed is filed under %q, %q", task.ErrType, task.ErrMessage)
	}
	task = first(false)
	ofKey(task, Event{Kind: Skipped, OrderKey: "a"}, 77, 9, t0+10)
	if task.ErrType != "skipped" || task.ErrMessage != "by ann" {
		t.Errorf("one that never failed is filed under %q, %q", task.ErrType, task.ErrMessage)
	}
}

// TestOnlyATaskOfTheKey that does not run: one of another key or of none, and one that runs stay as they are.
func TestOnlyATaskOfTheKey(t *testing.T) {
	running := first(false)
	grab(running, t0)
	for name, c := range map[string]struct {
		task *Task
		key  string
	}{"of another key": {first(true), "b"}, "of none": {fresh(), ""}, "running": {running, "a"}} {
		for _, kind := range []Kind{Skipped, Unblocked} {
			was, decided := c.task.State, c.task.updates().Seq
			if v, fx := ofKey(c.task, Event{Kind: kind, OrderKey: c.key}, 0, decided+5, t0+10); v.Code != fault.FailedPrecondition || v.Revision != 1 || fx != (Effects{}) || c.task.State != was {
				t.Errorf("%s, %s: %+v %+v %s", kind, name, v, fx, c.task.State)
			}
			if c.task.updates().Seq != decided+5 {
				t.Errorf("%s, %s: it is not known to be decided", kind, name)
			}
		}
	}
	for _, away := range []*Task{fresh(), first(false)} {
		away.State = Waiting
		steps := len(away.Steps)
		if v, _ := Apply(away, &Event{Kind: Skipped, OrderKey: away.OrderKey(), Domain: away.Domain, Update: &Update{}, Seq: 5}, t0); v.Code != fault.FailedPrecondition || len(away.Steps) != steps {
			t.Errorf("in the timer store: %+v", v)
		}
	}
}

// TestARunningFirstTaskIsAskedToStop, if the operator says so: then it is cancelled when its attempt ends.
func TestARunningFirstTaskIsAskedToStop(t *testing.T) {
	task := first(true)
	grab(task, t0)
	for seq := range uint64(2) {
		if v, fx := ofKey(task, Event{Kind: Skipped, OrderKey: "a", CancelRunning: true}, 77, 9+seq, t0+10); v != (Verdict{CancelRequested: true, Revision: 2}) || fx != (Effects{}) || !task.CancelRequested || task.Revision() != 2 {
			t.Fatalf("%+v %+v", v, fx)
		}
	}
	if _, fx := send(task, Failed, t0+20); task.State != Cancelled || !fx.Finish || task.CancelReason != "by ann" {
		t.Errorf("%s", task.State)
	}
}

// TestWhoHearsThatACancelWasAsked: a repeat of what has asked for it, while the attempt runs. Neither what came beside it nor a repeat of the skip of a stay before.
func TestWhoHearsThatACancelWasAsked(t *testing.T) {
	skip := func(task *Task, request, seq uint64) Verdict {
		v, _ := ofKey(task, Event{Kind: Skipped, OrderKey: "a", CancelRunning: true}, request, seq, t0+10)
		return v
	}
	task := blocked()
	ofKey(task, Event{Kind: Unblocked, OrderKey: "a"}, 70, 9, t0+6)
	grab(task, t0+7)
	ofKey(task, Event{Kind: Skipped, OrderKey: "a", CancelRunning: true, Update: &Update{IfRevision: 9}}, 71, 10, t0+8)
	skip(task, 72, 11)
	if v := skip(task, 72, 12); !v.CancelRequested {
		t.Errorf("a repeat: %+v", v)
	}
	if v, _ := ofKey(task, Event{Kind: Unblocked, OrderKey: "a"}, 70, 9, t0+10); !mayBeCopy(v) || v.CancelRequested {
		t.Errorf("the unblock before, once more: %+v", v)
	}
	if v := skip(task, 71, 10); !mayBeCopy(v) || v.CancelRequested {
		t.Errorf("one that was refused, once more: %+v", v)
	}
	task.Lost = LostMax - 1
	if Apply(task, &Event{Kind: Expired, ID: task.ID, Fence: task.Token(), SilentLease: task.WakeAt()}, t0+12); !task.HeldUp() {
		t.Fatalf("it is %s", task.State)
	}
	testkit.Equal(t, "a repeat when it blocks its key", skip(task, 72, 15), (Verdict{Revision: 3}))

	task = first(false)
	skip(task, 77, 9)
	Bring(task, redriveOf(5), t0+20)
	Load(task, t0+30)
	grab(task, t0+40)
	testkit.Equal(t, "a repeat of a skip before a redrive", skip(task, 77, 90), (Verdict{Revision: 2}))
}

// TestATaskThatBlocksItsKeyIsUnblocked once by a request, also if it blocks the key again since.
func TestATaskThatBlocksItsKeyIsUnblocked(t *testing.T) {
	task := blocked()
	v, fx := ofKey(task, Event{Kind: Unblocked, OrderKey: "a", Update: &Update{Policy: &Policy{MaxAttempts: 3}}}, 77, 9, t0+10)
	if v != (Verdict{Revision: 2}) || !fx.Trigger || task.State != Ready || task.HeldUp() || task.Policy.MaxAttempts != 3 || task.ReadyAt != t0+10 || task.DueAt != t0+10 {
		t.Fatalf("%+v %+v %s %+v", v, fx, task.State, task.Policy)
	}
	if last := task.Steps[len(task.Steps)-1]; last.Kind != StepUnblocked || last.Message != "by ann" {
		t.Errorf("its history ends with %+v", last)
	}
	for now := t0 + 20; !task.HeldUp(); now = max(now, task.DueAt) + 10 { // a failure of before, and two more
		if !grab(task, now).Granted {
			t.Fatal("not granted")
		}
		send(task, Failed, now)
	}
	testkit.Equal(t, "blocked after failures", task.Failures, 3)
	if again, fx := ofKey(task, Event{Kind: Unblocked, OrderKey: "a"}, 77, 12, t0+9000); again != v || fx != (Effects{}) || !task.HeldUp() {
		t.Errorf("repeated: %+v %+v", again, fx)
	}
	if v, _ := ofKey(first(true), Event{Kind: Unblocked, OrderKey: "a"}, 79, 15, t0+20); v.Code != fault.FailedPrecondition {
		t.Errorf("one that does not block it: %+v", v)
	}
}

// TestSinceWhenAndWhy a key waits.
func TestSinceWhenAndWhy(t *testing.T) {
	task := blocked()
	if task.Since() != t0+5 || task.Why() != "no route" {
		t.Errorf("blocked since %+d: %q", task.Since()-t0, task.Why())
	}
	task = first(false)
	if task.Since() != t0 || task.Why() != "" {
		t.Errorf("ready since %+d", task.Since()-t0)
	}
	grab(task, t0+30)
	if task.Since() != t0+30 {
		t.Errorf("running since %+d", task.Since()-t0)
	}
	task.Policy.MaxAttempts = 2
	send(task, Failed, t0+40)
	if task.State != Backoff || task.Since() != t0+40 {
		t.Errorf("%s since %+d", task.State, task.Since()-t0)
	}
	grab(task, task.DueAt)
	if send(task, Cancel, task.DueAt+5); task.Since() != task.DueAt {
		t.Errorf("running and to be cancelled since %+d", task.Since()-t0)
	}

	task = first(true)
	task.Policy.Rules = &Rules{NonRetryable: []string{"e"}}
	grab(task, t0)
	Apply(task, &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), Message: "no route", ErrType: "e"}, t0+5)
	changeAt(task, &Update{Priority: 1}, 10, t0+8)
	if task.Since() != t0+5 || task.Why() != byNonRetryable {
		t.Errorf("blocked by its policy, and changed since %+d: %q", task.Since()-t0, task.Why())
	}
	without := *task
	if without.SetSteps(nil, 9); without.Since() != t0+5 || without.Why() != "no route" {
		t.Errorf("without its history, blocked since %+d: %q", without.Since()-t0, without.Why())
	}
	if ofKey(task, Event{Kind: Unblocked, OrderKey: "a"}, 70, 20, t0+20); task.Why() != "no route" {
		t.Errorf("unblocked: %q", task.Why())
	}

	task = in(Backoff)
	if task.Since() != t0 || task.Why() != "" {
		t.Errorf("without a key it waits since %+d: %q", task.Since()-t0, task.Why())
	}
	if task.SetSteps(nil, 9); task.Since() != task.ReadyAt {
		t.Errorf("without a key and its history since %+d", task.Since()-t0)
	}
}
