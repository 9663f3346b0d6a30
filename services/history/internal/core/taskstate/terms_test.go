package taskstate

import (
	"reflect"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// termsOf are terms of a revision with other values than those of the tests' policy.
func termsOf(revision int64) *Terms {
	return &Terms{Policy: &Policy{
		MaxAttempts: 30, InitialIntervalMS: 10, Backoff: 40, MaxIntervalMS: 600, StartToCloseMS: 100_000, HeartbeatTimeoutMS: 20_000,
		MaxDeliveries: 50, Jitter: JitterNone, OnLost: LostFails, OnTimeout: TimeoutDies,
		Rules:  &Rules{NonRetryable: []string{"typed"}, ByError: []ErrorRule{{ErrType: "typed", MaxAttempts: 1}}},
		OfType: ^Fields(0), TypeRevision: revision,
	}}
}

// TestTermsReplaceTheFieldsOfTheType: each field alone, and no field that the task has set itself.
func TestTermsReplaceTheFieldsOfTheType(t *testing.T) {
	own := policy()
	own.Rules = &Rules{NonRetryable: []string{"own"}, ByError: []ErrorRule{{ErrType: "own", MaxAttempts: 2}}}
	own.TypeRevision = 4
	typed := termsOf(5).Policy
	for field, take := range map[Fields]func(p *Policy){
		FieldMaxAttempts:      func(p *Policy) { p.MaxAttempts = 30 },
		FieldInitialInterval:  func(p *Policy) { p.InitialIntervalMS = 10 },
		FieldBackoff:          func(p *Policy) { p.Backoff = 40 },
		FieldMaxInterval:      func(p *Policy) { p.MaxIntervalMS = 1000 }, // not less than the first wait
		FieldStartToClose:     func(p *Policy) { p.StartToCloseMS = 100_000 },
		FieldHeartbeatTimeout: func(p *Policy) { p.HeartbeatTimeoutMS = 20_000 },
		FieldMaxDeliveries:    func(p *Policy) { p.MaxDeliveries = 50 },
		FieldJitter:           func(p *Policy) { p.Jitter = JitterNone },
		FieldOnLost:           func(p *Policy) { p.OnLost = LostFails },
		FieldOnTimeout:        func(p *Policy) { p.OnTimeout = TimeoutDies },
		FieldNonRetryable:     func(p *Policy) { p.Rules = &Rules{NonRetryable: typed.Rules.NonRetryable, ByError: own.Rules.ByError} },
		FieldByError:          func(p *Policy) { p.Rules = &Rules{NonRetryable: own.Rules.NonRetryable, ByError: typed.Rules.ByError} },
	} {
		before := *own
		before.OfType = field
		want := before
		want.TypeRevision = 5
		take(&want)
		if got := termsOf(5).over(&before); !reflect.DeepEqual(*got, want) {
			t.Errorf("field %b: %+v, want %+v", field, *got, want)
		}
	}
	before := *own
	before.OfType = typed.OfType
	if got := termsOf(5).over(&before); !reflect.DeepEqual(*got, *typed) {
		t.Errorf("all fields: %+v", *got)
	}
	if got := (&Rules{NonRetryable: []string{"own"}}).following(FieldNonRetryable, nil); got != nil {
		t.Errorf("without a list: %+v", got)
	}
}

// TestOnlyLaterTermsHold: those of an earlier revision change nothing, and equal policies become one.
func TestOnlyLaterTermsHold(t *testing.T) {
	p := policy()
	p.OfType, p.TypeRevision = ^Fields(0), 5
	set := policy()
	set.TypeRevision = 1
	for _, same := range []struct {
		of *Terms
		p  *Policy
	}{{nil, p}, {termsOf(5), p}, {termsOf(4), p}, {termsOf(9), set}} {
		if got := same.of.over(same.p); got != same.p {
			t.Errorf("%+v became %+v", same.p, got)
		}
	}
	later := termsOf(6)
	if first, second := later.over(p), later.over(p); first == p || first != second {
		t.Error("two tasks with one policy have two now")
	}
}

// grabOf is the event that starts the next attempt of a task.
func grabOf(t *Task) Event {
	return Event{Kind: Started, Fence: ids.Token{Position: t.Position, Version: t.Version + 1, Nonce: 9}}
}

// TestATaskTakesTheTermsOfItsType when an attempt starts and when it ends. A start that is refused changes nothing.
func TestATaskTakesTheTermsOfItsType(t *testing.T) {
	typed := func() *Task {
		task := fresh()
		task.Policy.OfType = ^Fields(0)
		return task
	}
	task := typed()
	late := grabOf(task)
	late.Fence.Version = 9
	if v, _ := ApplyUnder(termsOf(1), task, &late, t0); v.Granted || task.Policy.MaxAttempts != 3 {
		t.Fatalf("%+v: %+v", v, task.Policy)
	}
	begins := grabOf(task)
	v, _ := ApplyUnder(termsOf(1), task, &begins, t0)
	testkit.MustEqual(t, "granted", v.Granted, true)
	testkit.Equal(t, "the deadline", task.Attempt.DeadlineAt, t0+100_000)
	testkit.Equal(t, "the lease", v.LeaseUntil, t0+20_000)
	if v, _ := ApplyUnder(termsOf(3), task, &begins, t0); !v.Repeated || task.Policy.TypeRevision != 1 {
		t.Errorf("a repeat: %+v, revision %d", v, task.Policy.TypeRevision)
	}
	ApplyUnder(termsOf(1), task, &Event{Kind: Failed, Fence: task.Token(), ErrType: "typed"}, t0+1)
	testkit.Equal(t, "by the error rule", task.State, Dead)

	task = typed()
	grab(task, t0)
	ApplyUnder(termsOf(2), task, &Event{Kind: Failed, Fence: task.Token()}, t0+1)
	testkit.Equal(t, "the wait", task.DueAt, t0+11)
	task = typed()
	grab(task, t0)
	ApplyUnder(termsOf(2), task, &Event{Kind: Expired, Fence: task.Token()}, t0+10_000)
	testkit.Equal(t, "a lost attempt fails", task.Failures, 1)
}

// TestAnUpdateMakesFieldsTheTasksOwn: the type does not decide them any more.
func TestAnUpdateMakesFieldsTheTasksOwn(t *testing.T) {
	task := fresh()
	task.Policy.OfType = ^Fields(0)
	set := &Policy{MaxAttempts: 7, HeartbeatTimeoutMS: 900, OnLost: LostDies, Rules: &Rules{NonRetryable: []string{"own"}}}
	task.changePolicy(set)
	p := termsOf(3).over(task.Policy)
	if p.MaxAttempts != 7 || p.HeartbeatTimeoutMS != 900 || p.OnLost != LostDies || p.Rules.NonRetryable[0] != "own" || p.Rules.ByError[0].ErrType != "typed" || p.StartToCloseMS != 100_000 {
		t.Errorf("%+v %+v", p, p.Rules)
	}
}
