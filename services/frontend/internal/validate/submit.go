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
		if err := newTask(i, t, req.Tasklist, now, form); err != nil {
			return err
		}
	}
	if err := orderKeys(req.Tasks); err != nil {
		return err
	}
	if err := batchIDs(req.Tasks); err != nil {
		return err
	}
	return uniqueKeys(req.Tasks)
}

// newTask builds a path only where something is wrong: this runs for every task.
func newTask(i int, t *yardv1.NewTask, tasklist string, now time.Time, form Form) error {
	if t == nil {
		return invalid(at("tasks", i, ""), "is missing")
	}
	if err := typeName("", t.Type); err != nil {
		return typeName(at("tasks", i, "type"), t.Type)
	}
	if t.Tasklist != "" {
		if name("", t.Tasklist) != nil {
			return name(at("tasks", i, "tasklist"), t.Tasklist)
		}
	} else if tasklist == "" {
		return invalid(at("tasks", i, "tasklist"), "is missing, and the request names no tasklist either")
	}
	if payload("", t.Payload, PayloadBytesMax, form) != nil {
		return payload(at("tasks", i, "payload"), t.Payload, PayloadBytesMax, form)
	}
	if t.Priority < 0 || t.Priority > PriorityLast {
		return optional(at("tasks", i, "priority"), t.Priority, PriorityFirst, PriorityLast)
	}
	if len(t.Headers) > 0 {
		if err := headers(at("tasks", i, "headers"), t.Headers); err != nil {
			return err
		}
	}
	if t.Group != "" {
		if err := typeName(at("tasks", i, "group"), t.Group); err != nil {
			return err
		}
	}
	if t.Cost < 0 || t.Cost > CostMax {
		return optional(at("tasks", i, "cost"), t.Cost, 1, CostMax)
	}
	if t.DelayMs != 0 || t.RunAtMs != 0 {
		if err := dueTime(i, t, now); err != nil {
			return err
		}
	}
	if t.Retry != nil {
		if err := retry(at("tasks", i, "retry"), t.Retry); err != nil {
			return err
		}
	}
	if t.StartWithinMs != 0 || t.FinishWithinMs != 0 {
		if err := expiry(at("tasks", i, ""), t.StartWithinMs, t.FinishWithinMs); err != nil {
			return err
		}
	}
	if t.StartToCloseMs != 0 || t.HeartbeatTimeoutMs != 0 {
		return timeouts(at("tasks", i, ""), t.StartToCloseMs, t.HeartbeatTimeoutMs)
	}
	return nil
}

func dueTime(i int, t *yardv1.NewTask, now time.Time) error {
	switch {
	case t.DelayMs != 0 && t.RunAtMs != 0:
		return invalid(at("tasks", i, "delay_ms"), "delay_ms and run_at_ms exclude each other")
	case t.DelayMs < 0:
		return invalid(at("tasks", i, "delay_ms"), "is negative")
	case t.RunAtMs < 0:
		return fault.At(fault.InvalidTime, at("tasks", i, "run_at_ms"), "is negative")
	case t.DelayMs > ms(AheadMax):
		return fault.At(fault.InvalidTime, at("tasks", i, "delay_ms"), "is %d, at most %d (366 days) is allowed", t.DelayMs, ms(AheadMax))
	case t.RunAtMs == 0:
		return nil
	}
	ahead := t.RunAtMs - now.UnixMilli() // neither is negative: cannot overflow
	if ahead < -ms(PastGrace) {
		return fault.At(fault.InvalidTime, at("tasks", i, "run_at_ms"), "is %d ms in the past, at most %d are allowed", -ahead, ms(PastGrace))
	}
	if ahead > ms(AheadMax) {
		return fault.At(fault.InvalidTime, at("tasks", i, "run_at_ms"), "is %d ms ahead, at most %d (366 days) are allowed", ahead, ms(AheadMax))
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
