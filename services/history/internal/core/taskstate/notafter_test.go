package taskstate

import (
	"reflect"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAnExpiryThatTheLogTookTooLateIsVoid, up to the millisecond; without a date it never is.
func TestAnExpiryThatTheLogTookTooLateIsVoid(t *testing.T) {
	for _, c := range []struct {
		notAfter, at int64
		void         bool
	}{{t0 + 20_000, t0 + 20_000, false}, {t0 + 20_000, t0 + 20_001, true}, {0, t0 + 1<<40, false}} {
		task := fresh()
		grab(task, t0)
		before := task.Attempt
		v, fx := Apply(task, &Event{Kind: Expired, ID: task.ID, Fence: task.Token(), NotAfter: c.notAfter}, c.at)
		if c.void != (v.Code == fault.FailedPrecondition) || c.void != (task.State == Running) {
			t.Errorf("not after %d, at %d: %+v, %s", c.notAfter-t0, c.at-t0, v, task.State)
		}
		if c.void && (fx != (Effects{}) || !reflect.DeepEqual(task.Attempt, before)) {
			t.Errorf("a void one changed it: %+v", fx)
		}
	}
}

// TestWhatRanOutFirstCounts: an expiry may be held back past start_to_close. A worker that fell silent before costs no failure.
func TestWhatRanOutFirstCounts(t *testing.T) {
	for _, c := range []struct {
		beats    bool
		failures int32
		lost     int16
	}{{true, 0, 1}, {false, 1, 0}} {
		task := fresh()
		if !c.beats {
			task.Policy.HeartbeatTimeoutMS = 0
		}
		grab(task, t0)
		Apply(task, &Event{Kind: Expired, ID: task.ID, Fence: task.Token(), NotAfter: 1 << 60}, task.Attempt.DeadlineAt)
		if task.Failures != c.failures || task.Lost != c.lost {
			t.Errorf("heartbeats %v: %d failures, %d lost", c.beats, task.Failures, task.Lost)
		}
	}
	task := fresh()
	grab(task, t0)
	task.Attempt.BeatBy = task.Attempt.DeadlineAt // both at once
	Apply(task, &Event{Kind: Expired, ID: task.ID, Fence: task.Token(), NotAfter: 1 << 60}, task.Attempt.DeadlineAt)
	testkit.Equal(t, "both ran out: failures", task.Failures, 1)
}
