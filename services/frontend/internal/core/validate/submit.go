package validate

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Submit checks a submit. Times are checked against now: when the request came,
// or, for one with a request id, when it was made.
func Submit(req *yardv1.SubmitRequest, now time.Time, form Form) error {
	if err := count("/tasks", len(req.Tasks)); err != nil {
		return err
	}
	if err := ifNamed(name, "/tasklist", req.Tasklist); err != nil {
		return err
	}
	if req.Wait && len(req.Tasks) != 1 {
		return invalid("/wait", "one can wait for exactly one task, not %d", len(req.Tasks))
	}
	if !req.Wait && req.WaitMs != 0 {
		return invalid("/wait_ms", "has no effect without wait")
	}
	if err := between("/wait_ms", req.WaitMs, 0, ms(WaitMax)); err != nil {
		return err
	}
	for i, t := range req.Tasks {
		if err := newTask(t, req.Tasklist, now, form); err != nil {
			return inside(at("/tasks", i), err)
		}
	}
	return firstError(orderKeys(req.Tasks), batchIDs(req.Tasks), uniqueKeys(req.Tasks))
}

// newTask checks a task of a request for a tasklist, or for none.
func newTask(t *yardv1.NewTask, tasklist string, now time.Time, form Form) error {
	if t == nil {
		return invalid("", "is missing")
	}
	if err := typeName("/type", t.Type); err != nil {
		return err
	}
	if t.Tasklist == "" && tasklist == "" {
		return invalid("/tasklist", "is missing, and the request names no tasklist either")
	}
	return firstError(
		ifNamed(name, "/tasklist", t.Tasklist),
		payload("/payload", t.Payload, PayloadBytesMax, form),
		optional("/priority", t.Priority, PriorityFirst, PriorityLast),
		headers("/headers", t.Headers),
		ifNamed(typeName, "/group", t.Group),
		optional("/cost", t.Cost, 1, CostMax),
		dueTime(t.DelayMs, t.RunAtMs, now),
		retry("/retry", t.Retry),
		expiry("", t.StartWithinMs, t.FinishWithinMs),
		timeouts("", t.StartToCloseMs, t.HeartbeatTimeoutMs),
	)
}

// dueTime checks the delay of a task, or when it is due; 0 = neither.
func dueTime(delayMs, runAtMs int64, now time.Time) error {
	switch {
	case delayMs != 0 && runAtMs != 0:
		return invalid("/delay_ms", "delay_ms and run_at_ms exclude each other")
	case delayMs < 0:
		return invalid("/delay_ms", "is negative")
	case runAtMs < 0:
		return fault.At(fault.InvalidTime, "/run_at_ms", "is negative")
	case delayMs > ms(AheadMax):
		return fault.At(fault.InvalidTime, "/delay_ms", "is %d, at most %d (366 days) is allowed", delayMs, ms(AheadMax))
	case runAtMs == 0:
		return nil
	}
	ahead := runAtMs - now.UnixMilli() // neither is negative: cannot overflow
	if ahead < -ms(PastGrace) {
		return fault.At(fault.InvalidTime, "/run_at_ms", "is %d ms in the past, at most %d are allowed", -ahead, ms(PastGrace))
	}
	if ahead > ms(AheadMax) {
		return fault.At(fault.InvalidTime, "/run_at_ms", "is %d ms ahead, at most %d (366 days) are allowed", ahead, ms(AheadMax))
	}
	return nil
}

// expiry checks the time that a task has; 0 = no limit.
func expiry(path string, start, finish int64) error {
	if err := firstError(
		optional(path+"/start_within_ms", start, ms(TimeoutMin), ms(AheadMax)),
		optional(path+"/finish_within_ms", finish, ms(TimeoutMin), ms(AheadMax)),
	); err != nil {
		return err
	}
	if finish != 0 && start > finish {
		return invalid(path+"/start_within_ms", "is %d, more than finish_within_ms (%d): the task would expire before", start, finish)
	}
	return nil
}

func timeouts(path string, startToClose, heartbeat int64) error {
	if startToClose > 0 && heartbeat > startToClose {
		return invalid(path+"/heartbeat_timeout_ms", "is %d, more than start_to_close_ms (%d): it would never count", heartbeat, startToClose)
	}
	return firstError(
		optional(path+"/start_to_close_ms", startToClose, ms(TimeoutMin), ms(TimeoutMax)),
		optional(path+"/heartbeat_timeout_ms", heartbeat, ms(TimeoutMin), ms(TimeoutMax)),
	)
}
