package taskstate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// deadTask used up its attempts, was changed and lost, and had a time and a unique key.
func deadTask() *Task {
	return &Task{
		ID: ids.TaskID{1}, Domain: "shop", State: Dead, Parkings: 3, Version: 9, Failures: 4, Lost: 2, HandedBack: 1, FinishedAt: 500, ErrMessage: "no", ErrType: "network",
		Policy: &Policy{MaxAttempts: 4, InitialIntervalMS: 100, Backoff: 2, MaxIntervalMS: 1000, StartToCloseMS: 1000, MaxDeliveries: 8},
		Extra: &Extra{
			Group: "acme", Unique: &Unique{Key: "7"}, Expiry: Expiry{StartWithinMS: 1000, FinishWithinMS: 5000, StartBy: 10, FinishBy: 50},
			Updates: &Updates{Applied: 2, Passed: 1},
		},
		Steps: []Step{{Kind: StepSubmitted}, {Kind: StepDead}},
	}
}

func redriveOf(request uint64) *Event {
	return &Event{Kind: Redrove, Domain: "shop", Message: "by ann", Seq: 77, Index: 3, Redrive: &Redrive{Letter: 5, Parkings: 3, Request: request}}
}

func TestADeadLetterComesBackAsTheNextStay(t *testing.T) {
	dead := deadTask()
	task := *dead
	e := redriveOf(11)
	e.Redrive.Policy = &Policy{MaxAttempts: 9}
	fx := Bring(&task, e, 10_000)
	if !fx.Park || fx.Finish || task.State != Waiting || task.Parkings != 4 || task.DueAt != 10_000 || task.FinishedAt != 0 {
		t.Errorf("%+v, %+v", fx, task)
	}
	if task.Failures != 0 || task.Lost != 0 || task.HandedBack != task.Grants() || task.spent() || task.Version != 9 {
		t.Errorf("it counts %d failures, %d lost, %d handed back of %d", task.Failures, task.Lost, task.HandedBack, task.Grants())
	}
	if want := (Expiry{1000, 5000, 11_000, 15_000}); task.Expiry() != want || task.Unique() != nil || task.Group() != "acme" || task.Revision() != 3 {
		t.Errorf("it has %+v, %+v", task.Expiry(), task.Extra)
	}
	if task.Policy.MaxAttempts != 9 || task.Policy.Backoff != 2 || dead.Policy.MaxAttempts != 4 {
		t.Errorf("policy %+v, of the letter %+v", task.Policy, dead.Policy)
	}
	if s := task.Steps[2]; s.Kind != StepRedriven || s.Message != "by ann" || len(task.Steps) != 4 {
		t.Errorf("steps %+v", task.Steps)
	}
	if dead.Unique() == nil || dead.Redriven().Count != 0 { // copies share what few tasks have
		t.Error("the letter was changed")
	}
	if got := task.Redriven(); got.Count != 1 || got.Seq != 77 || got.Index != 3 || got.Requests[0] != 11 {
		t.Errorf("it remembers %+v", got)
	}
}

// TestATaskThatWasToBeCancelledComesBackAlive: workers that fall silent make it a dead letter, a cancel or not.
func TestATaskThatWasToBeCancelledComesBackAlive(t *testing.T) {
	task := deadTask()
	task.CancelRequested, task.CancelReason = true, "no more"
	Bring(task, redriveOf(1), 10)
	if task.CancelRequested || task.CancelReason != "" {
		t.Errorf("it is to be cancelled: %q", task.CancelReason)
	}
}

func TestARedriveWithRulesWeighsWhatTheyTake(t *testing.T) {
	d := &Redrive{Policy: &Policy{Rules: &Rules{NonRetryable: []string{"network"}}}}
	if d.Bytes() < len("network") || (&Redrive{}).Bytes() != 0 {
		t.Errorf("it weighs %d bytes", d.Bytes())
	}
}

func TestARedriveIsKnownAgain(t *testing.T) {
	task := deadTask()
	for request := uint64(1); request <= redrivesKept+1; request++ {
		task.State = Dead
		Bring(task, redriveOf(request), 1)
	}
	for request, want := range map[uint64]fault.Code{1: fault.FailedPrecondition, 2: "", redrivesKept + 1: "", 99: fault.FailedPrecondition, 0: fault.FailedPrecondition} {
		if v := RefuseRedrive(task, redriveOf(request)); v.Code != want {
			t.Errorf("request %d: %q, want %q", request, v.Code, want)
		}
	}
	for s := Waiting; s <= Lapsed; s++ { // no state takes a redrive: the letter does
		if s == 2 {
			continue
		}
		task.State = s
		if v, fx := Apply(task, redriveOf(99), 1); v.Code != fault.FailedPrecondition || fx != (Effects{}) || task.State != s {
			t.Errorf("%s: %+v", s, v)
		}
	}
	if v, fx := Apply(task, redriveOf(2), 1); v != (Verdict{}) || fx != (Effects{}) {
		t.Errorf("a repeat: %+v", v)
	}
	for s, want := range map[State]string{Dead: "the task has become another dead letter since", Completed: "the task is completed and no dead letter"} {
		if task.State = s; RefuseRedrive(task, redriveOf(99)).Message != want {
			t.Errorf("%s: %q", s, RefuseRedrive(task, redriveOf(99)).Message)
		}
	}
	was := Redriven{Seq: 7, Index: 2}
	for at, want := range map[[2]int]bool{{6, 9}: true, {7, 2}: true, {7, 3}: false, {8, 0}: false} {
		if was.Before(uint64(at[0]), at[1]) != want {
			t.Errorf("%v", at)
		}
	}
}

// TestARedriveWithoutARequestIsNoRepeat of others.
func TestARedriveWithoutARequestIsNoRepeat(t *testing.T) {
	task := deadTask()
	Bring(task, redriveOf(11), 10)
	for request, want := range map[uint64]bool{11: true, 12: false, 0: false} {
		if got := task.RedrivenBy(redriveOf(request)); got != want {
			t.Errorf("request %d: %v", request, got)
		}
	}
}
