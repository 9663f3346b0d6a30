package taskstate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

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
