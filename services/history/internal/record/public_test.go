package record

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// TestState: a task whose wait is over is ready. One that blocks its order key waits for no time.
func TestState(t *testing.T) {
	for name, c := range map[string]struct {
		task taskstate.Task
		want yardv1.TaskState
	}{
		"before its next attempt":   {taskstate.Task{State: taskstate.Backoff, Version: 1, DueAt: 101}, yardv1.TaskState_TASK_STATE_BACKOFF},
		"when its wait is over":     {taskstate.Task{State: taskstate.Backoff, Version: 1, DueAt: 100}, yardv1.TaskState_TASK_STATE_READY},
		"it blocks its order key":   {taskstate.Task{State: taskstate.Backoff, Version: 1}, yardv1.TaskState_TASK_STATE_BACKOFF},
		"an update moved its time":  {taskstate.Task{State: taskstate.Backoff, DueAt: 101}, yardv1.TaskState_TASK_STATE_WAITING},
		"and that has come":         {taskstate.Task{State: taskstate.Backoff, DueAt: 100}, yardv1.TaskState_TASK_STATE_READY},
		"on its way to be parked":   {taskstate.Task{State: taskstate.Waiting, Version: 1, Failures: 1, DueAt: 100}, yardv1.TaskState_TASK_STATE_BACKOFF},
		"while it runs":             {taskstate.Task{State: taskstate.Running, Version: 1, DueAt: 100}, yardv1.TaskState_TASK_STATE_RUNNING},
		"nothing is known about it": {taskstate.Task{}, yardv1.TaskState_TASK_STATE_QUEUED},
	} {
		testkit.Equal(t, name, State(&c.task, 100), c.want)
	}
}
