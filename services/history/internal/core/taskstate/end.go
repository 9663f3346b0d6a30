package taskstate

import "github.com/yardmaster-io/yardmaster/contracts/fault"

// endedType is the error type of a task that an operator made a dead letter.
const endedType = "ended"

// endByHand ends t for an operator, whatever it does. An attempt that runs is over: what its worker reports comes too late.
func endByHand(t *Task, e *Event, now int64) (Verdict, Effects) {
	as := e.Update.EndState
	if as != Completed && as != Dead && as != Cancelled {
		return refuse(fault.InvalidArgument, "the end names no state that a task can be ended in")
	}
	v, over := t.decided(e)
	if over {
		return v, Effects{}
	}
	t.applied()
	var fx Effects
	s := Step{At: now, Message: e.Message}
	if t.State == Running {
		s.Grant = t.Grants()
		fx = t.endAttempt(Ended)
	}
	switch as {
	case Completed:
		s.Kind = StepCompleted
		t.Result, t.ErrMessage, t.ErrType = e.Update.Payload, "", ""
	case Dead:
		s.Kind, s.ErrType = StepDead, endedType
		t.ErrMessage, t.ErrType = e.Message, endedType
	default:
		s.Kind = StepCancelled
		t.CancelRequested, t.CancelReason = true, e.Message
	}
	t.step(s)
	t.finish(as, now, &fx)
	return v, fx
}
