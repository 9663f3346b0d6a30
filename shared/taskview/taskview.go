// Package taskview shows a stored task as the API does.
//
// Owns: which field of a record is which of a task. Never does: say in which state it is, which its caller knows. On failure: nothing can fail.
package taskview

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Of is a record, whose id has 16 bytes, as the API shows it; brief leaves out payload and events.
func Of(r *logv1.Record, state yardv1.TaskState, brief bool) *yardv1.Task {
	id := ids.TaskID(r.Id)
	t := &yardv1.Task{
		TaskId: id.String(), Domain: r.Domain, Tasklist: r.Tasklist, Type: r.Type, Priority: r.Priority, State: state,
		Failures: r.Failures, Grants: int32(r.Version - r.Updates.GetPassed()), Revision: int64(r.Updates.GetApplied() + 1), Redrives: int32(r.Redriven.GetCount()),
		CreatedAtMs: id.Time().UnixMilli(), DueAtMs: r.DueAtMs, ErrorMessage: r.ErrorMessage, ErrorType: r.ErrorType,
		Group: r.Group, Cost: r.Cost, UniqueKey: r.Unique.GetKey(), UniqueForMs: r.Unique.GetForMs(), OrderKey: r.Order.GetKey(), BatchId: r.BatchId,
		StartByMs: r.GetExpiry().GetStartByMs(), FinishByMs: r.GetExpiry().GetFinishByMs(),
	}
	if r.Order.GetBlocks() {
		t.OrderPolicy = yardv1.OrderPolicy_ORDER_POLICY_BLOCK
	}
	for _, h := range r.Headers {
		if t.Headers == nil {
			t.Headers = make(map[string]string, len(r.Headers))
		}
		t.Headers[h.Name] = h.Value
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
