package record

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Public is the task as `get` shows it at an instant, Unix ms; brief leaves out payloads and events.
func Public(t *taskstate.Task, brief bool, now int64) *yardv1.Task {
	out := &yardv1.Task{
		TaskId: t.ID.String(), Domain: t.Domain, Tasklist: t.Tasklist, Type: t.Type, Priority: t.Priority,
		State: State(t, now), Failures: t.Failures, Grants: int32(t.Grants()),
		CreatedAtMs: t.CreatedAt(), DueAtMs: t.DueAt, FinishedAtMs: t.FinishedAt,
		ErrorMessage: t.ErrMessage, ErrorType: t.ErrType, CancelRequested: t.CancelRequested && t.State == taskstate.Running,
		Headers: publicHeaders(t.HeaderList()), StartByMs: t.Expiry().StartBy, FinishByMs: t.Expiry().FinishBy,
		Group: t.Group(), Cost: t.Cost(), Revision: int64(t.Revision()), Redrives: int32(t.Redriven().Count), BatchId: t.BatchID(),
	}
	if u := t.Unique(); u != nil {
		out.UniqueKey, out.UniqueForMs = u.Key, u.ForMS
	}
	if o := t.Order(); o != nil {
		out.OrderKey, out.AwaitsTurn = o.Key, t.State.Active() && !o.Turn
		if out.Blocked = t.State.Active() && o.Blocked; o.Blocks {
			out.OrderPolicy = yardv1.OrderPolicy_ORDER_POLICY_BLOCK
		}
	}
	if t.State == taskstate.Running {
		out.Worker = t.Attempt.Worker.Name()
	}
	if brief {
		return out
	}
	out.Traceparent = telemetry.FormatTraceparent([]byte(t.Trace))
	out.Payload, out.Result = publicBlob(t.Payload), publicBlob(t.Result)
	if t.State == taskstate.Running {
		out.Progress = publicBlob(t.Attempt.Progress)
	}
	for _, s := range t.Steps {
		out.Events = append(out.Events, &yardv1.TaskEvent{
			Kind: yardv1.TaskEventKind(s.Kind), AtMs: s.At, Grant: int32(s.Grant), Worker: s.Worker,
			Message: s.Message, ErrorType: s.ErrType, DueAtMs: s.DueAt,
		})
	}
	return out
}

// State is the state of a task as the API tells it at an instant, Unix ms. A failed task on its way into
// the timer store is in backoff already, as it is in there. One whose wait is over is ready.
func State(t *taskstate.Task, now int64) yardv1.TaskState {
	switch {
	case t.State == taskstate.Backoff && t.DueAt > 0 && t.DueAt <= now:
		return yardv1.TaskState_TASK_STATE_READY
	case t.State == taskstate.None:
		return yardv1.TaskState_TASK_STATE_QUEUED
	case t.State == taskstate.Waiting && t.Failures > 0:
		return yardv1.TaskState_TASK_STATE_BACKOFF
	case t.State == taskstate.Backoff && t.Grants() == 0: // an update has moved its time
		return yardv1.TaskState_TASK_STATE_WAITING
	}
	return yardv1.TaskState(t.State)
}

func publicBlob(b taskstate.Blob) *yardv1.Payload {
	if len(b.Data) == 0 {
		return nil
	}
	return &yardv1.Payload{Data: b.Data, Encoding: yardv1.Encoding(b.Encoding)}
}
