package api

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// public is a waiting record as `get` shows it; brief leaves out payload and events.
func public(r *logv1.Record, brief bool) *yardv1.Task {
	id := ids.TaskID(r.Id) // of 16 bytes, or it would not be in the table
	t := &yardv1.Task{
		TaskId: id.String(), Domain: r.Domain, Tasklist: r.Tasklist, Type: r.Type, Priority: r.Priority,
		State: yardv1.TaskState_TASK_STATE_WAITING, Failures: r.Failures, Grants: int32(r.Version - r.Updates.GetPassed()), Revision: int64(r.Updates.GetApplied() + 1), Redrives: int32(r.Redriven.GetCount()),
		CreatedAtMs: id.Time().UnixMilli(), DueAtMs: r.DueAtMs, ErrorMessage: r.ErrorMessage, ErrorType: r.ErrorType,
		Traceparent: telemetry.FormatTraceparent(r.Trace), Group: r.Group, Cost: r.Cost, UniqueKey: r.Unique.GetKey(), UniqueForMs: r.Unique.GetForMs(),
		BatchId: r.BatchId,
	}
	t.StartByMs, t.FinishByMs = r.GetExpiry().GetStartByMs(), r.GetExpiry().GetFinishByMs()
	for _, h := range r.Headers {
		if t.Headers == nil {
			t.Headers = make(map[string]string, len(r.Headers))
		}
		t.Headers[h.Name] = h.Value
	}
	if r.Failures > 0 {
		t.State = yardv1.TaskState_TASK_STATE_BACKOFF
	}
	if brief {
		return t
	}
	if len(r.Payload) > 0 {
		t.Payload = &yardv1.Payload{Data: r.Payload, Encoding: yardv1.Encoding(r.PayloadEncoding)}
	}
	for _, s := range r.Steps {
		t.Events = append(t.Events, &yardv1.TaskEvent{
			Kind: yardv1.TaskEventKind(s.Kind), AtMs: s.AtMs, Grant: int32(s.Grant), Worker: s.Worker,
			Message: s.Message, ErrorType: s.ErrorType, DueAtMs: s.DueAtMs,
		})
	}
	return t
}
