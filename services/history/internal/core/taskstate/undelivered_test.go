package taskstate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// TestAnAttemptHoldsThePathThatItWasBookedIn: what the grab names; and just that is released, with a nil path nothing.
func TestAnAttemptHoldsThePathThatItWasBookedIn(t *testing.T) {
	for _, c := range []struct {
		limits *Path
		want   string
	}{
		{nil, ""},
		{NewPath("type/send"), "type/send"},
		{NewPath("domain", "type/other"), "domain type/other"},
	} {
		task := fresh()
		ev := Event{Kind: Started, ID: task.ID, Fence: ids.Token{Position: task.Position, Version: 1}, Limits: c.limits}
		Apply(task, &ev, t0)
		_, fx := send(task, Succeeded, t0)
		if got := task.Attempt.Limits.String(); got != c.want || fx.Release.String() != c.want || strings.Join(fx.Release.Refs(), " ") != c.want {
			t.Errorf("%q: held %q, released %q", c.limits, got, fx.Release)
		}
	}
	if NewPath() != nil || len((*Path)(nil).Refs()) != 0 {
		t.Error("the path of nothing is nil")
	}
}

// TestR41WhatNobodyReceivedBurnsNothing: neither the attempts of a policy with one nor the lost grants; but a
// cancel ends it. The history says so. Past the bound it counts as any other, so it ends.
func TestR41WhatNobodyReceivedBurnsNothing(t *testing.T) {
	expired := func(task *Task, now int64) Effects {
		_, fx := Apply(task, &Event{Kind: Expired, ID: task.ID, Fence: task.Token(), Undelivered: true}, now)
		return fx
	}
	for _, late := range []int64{2_000, 10_000} { // silent, and past start_to_close
		task := fresh()
		task.Policy.MaxAttempts, task.Lost, task.ErrMessage = 1, LostMax-1, "before"
		grab(task, t0)
		if v, fx := Apply(task, &Event{Kind: Expired, ID: task.ID, Fence: task.Token(), Undelivered: true}, t0+1_999); v.Code != fault.FailedPrecondition || fx != (Effects{}) {
			t.Fatalf("before its time: %+v %+v", v, fx)
		}
		fx := expired(task, t0+late)
		if task.State != Ready || fx != (Effects{Trigger: true, Release: task.Attempt.Limits, ReleaseVersion: 1}) || task.ReadyAt != t0+late {
			t.Fatalf("after %d ms: %s, %+v", late, task.State, fx)
		}
		if task.Failures != 0 || task.Lost != LostMax-1 || task.ErrMessage != "before" || task.Attempt.Ended != Expired {
			t.Errorf("%d failures, %d lost, %q", task.Failures, task.Lost, task.ErrMessage)
		}
		wantSteps(t, task, fmt.Sprintf("1@0/0 >0; 4@0/1 w>0; 9@%d/1 wit may never have reached its worker>0", late))
	}

	task := fresh()
	grab(task, t0)
	send(task, Cancel, t0+1)
	if fx := expired(task, t0+2_000); task.State != Cancelled || !fx.Finish || fx.Trigger || fx.Release == nil {
		t.Errorf("a cancelled task: %s, %+v", task.State, fx)
	}

	task = fresh()
	now, grants := t0, 0
	for ; !task.State.Finished(); grants++ {
		if v := grab(task, now); !v.Granted || grants > 1000 {
			t.Fatalf("grant %d: %+v", grants, v)
		}
		now += 2_000
		expired(task, now)
	}
	if grants != UndeliveredMax+LostMax || task.State != Dead || task.ErrType != "lost" {
		t.Errorf("%d grants, %s of %q", grants, task.State, task.ErrType)
	}
}
