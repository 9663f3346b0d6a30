package gather

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// CountBatch adds what the owners count of a batch that is not over.
func CountBatch(b *yardv1.Batch, parts []*rpcv1.CountBatchResponse) {
	for _, p := range parts {
		ends := p.GetEnds()
		b.Tasks += p.Tasks
		b.Completed += ends.GetCompleted()
		b.Dead += ends.GetDead()
		b.Cancelled += ends.GetCancelled()
		b.Expired += ends.GetExpired()
	}
	b.Active = b.Tasks - b.Completed - b.Dead - b.Cancelled - b.Expired
}

// Batch is a batch as the API shows it, without counts unless it is over.
func Batch(h *logv1.BatchHome) *yardv1.Batch {
	public := &yardv1.Batch{
		BatchId: h.BatchId, State: yardv1.BatchState_BATCH_STATE_OPEN, Tasks: h.Tasks, CreatedAtMs: h.CreatedAtMs, ClosedAtMs: h.ClosedAtMs, EndedAtMs: h.EndedAtMs,
		ExpiresAtMs: h.ExpiresAtMs, KeepMs: h.KeepMs, CancelRequested: h.CancelRequested,
		CallbackType: h.Callback.GetType(), CallbackTasklist: h.Callback.GetTasklist(),
		Completed: h.Ends.GetCompleted(), Dead: h.Ends.GetDead(), Cancelled: h.Ends.GetCancelled(), Expired: h.Ends.GetExpired(),
	}
	switch {
	case h.Expired:
		public.State = yardv1.BatchState_BATCH_STATE_EXPIRED
	case h.EndedAtMs != 0:
		public.State = yardv1.BatchState_BATCH_STATE_COMPLETED
	case h.ClosedAtMs != 0:
		public.State = yardv1.BatchState_BATCH_STATE_CLOSED
	}
	if h.EndedAtMs != 0 {
		public.Active = h.Tasks - public.Completed - public.Dead - public.Cancelled - public.Expired
	}
	if id, err := ids.TaskIDFromBytes(h.CallbackTaskId); err == nil {
		public.CallbackTaskId = id.String()
	}
	return public
}
