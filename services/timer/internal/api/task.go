package api

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/taskview"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// public is a waiting record as `get` shows it; brief leaves out payload and events.
func public(r *logv1.Record, brief bool) *yardv1.Task {
	state := yardv1.TaskState_TASK_STATE_WAITING
	if r.Failures > 0 {
		state = yardv1.TaskState_TASK_STATE_BACKOFF
	}
	t := taskview.Of(r, state, brief)
	t.Traceparent = telemetry.FormatTraceparent(r.Trace)
	return t
}
