package taskstate

import "github.com/yardmaster-io/yardmaster/contracts/fault"

// skippedType is the error type of a task that was skipped before it failed.
const skippedType = "skipped"

// skip makes t a dead letter for an operator: who asks has seen that it is the first of its order key, which it stays until it ends. The attempt of one that
// runs is only asked to stop: what a worker does must not go on beside the next task.
func skip(t *Task, e *Event, now int64) (Verdict, Effects) {
	v, over := t.firstOf(e)
	if over {
		return v, Effects{}
	}
	if t.State == Running {
		if !e.CancelRunning {
			return t.asItIs("the task is running: cancel_running asks its worker to stop"), Effects{}
		}
		t.applied()
		c, fx := cancelRunning(t, e, now)
		v.CancelRequested = c.CancelRequested
		return v, fx
	}
	var fx Effects
	t.applied()
	if t.ErrMessage == "" {
		t.ErrMessage, t.ErrType = e.Message, skippedType
	}
	t.step(Step{Kind: StepDead, At: now, Message: e.Message, ErrType: t.ErrType})
	t.finish(Dead, now, &fx)
	return v, fx
}

// unblock gives t, which blocks its order key, one more attempt for an operator.
func unblock(t *Task, e *Event, now int64) (Verdict, Effects) {
	v, over := t.firstOf(e)
	if over {
		return v, Effects{}
	}
	if !t.Order().Blocked {
		return t.asItIs("the task does not block its order key: it is " + t.State.String()), Effects{}
	}
	t.applied()
	if e.Update.Policy != nil {
		t.changePolicy(e.Update.Policy)
	}
	t.setBlocked(false)
	t.DueAt = now
	t.step(Step{Kind: StepUnblocked, At: now, Message: e.Message})
	return v, t.ready(now)
}

// firstOf tells what was decided about an event of an order key: it comes again, or t has another key.
func (t *Task) firstOf(e *Event) (v Verdict, over bool) {
	if v, over = t.decided(e); over {
		v.CancelRequested = e.Kind == Skipped && v.Code == "" && t.State == Running && t.CancelRequested
		return v, true
	}
	if o := t.Order(); o == nil || o.Key != e.OrderKey {
		return t.asItIs("the task does not have this order key"), true
	}
	return v, false
}

// asItIs refuses to change t.
func (t *Task) asItIs(why string) Verdict {
	return Verdict{Code: fault.FailedPrecondition, Message: why, Revision: t.Revision()}
}

// Since is when t, which is active, came into its state, Unix ms.
func (t *Task) Since() int64 {
	switch n := len(t.Steps); {
	case t.State == Running:
		return t.Attempt.StartedAt
	case t.State == Ready || t.Order() != nil && t.Order().Blocked || n == 0:
		return t.ReadyAt
	default: // what made it wait is the last that happened
		return t.Steps[n-1].At
	}
}

// Why is why t waits, for people: what it blocks its order key for, or its last failure.
func (t *Task) Why() string {
	if o := t.Order(); o != nil && o.Blocked {
		for i := len(t.Steps) - 1; i >= 0; i-- {
			if t.Steps[i].Kind == StepBlocked {
				return t.Steps[i].Message
			}
		}
	}
	return t.ErrMessage
}
