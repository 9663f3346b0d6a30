package taskstate

import (
	"encoding/binary"
	"math"
)

const (
	// LostMax is how many grants in a row may be lost to silent workers before the
	// task counts as one that kills its workers.
	LostMax = 20
	// UndeliveredMax is up to which grant of a task one that may never have reached its worker costs
	// nothing. A later one counts as if it had: what takes down matching and its worker time and
	// again must not go round forever.
	UndeliveredMax = 100
	// ParkAfterMS is the longest wait, in ms, that stays in history's memory; a
	// longer one goes to the timer store. It is part of the function that the log is
	// applied by, so it is a constant and not a setting.
	ParkAfterMS = 10_000
)

// Load takes in the record of a submit, stored at now: a new task, or one that
// comes back from the timer store.
func Load(t *Task, now int64) Effects {
	if t.Parkings > 0 {
		t.step(Step{Kind: StepFired, At: now})
		return t.ready(now)
	}
	t.limitTime(now)
	t.step(Step{Kind: StepSubmitted, At: t.CreatedAt()})
	if t.DueAt > now {
		return t.park(now)
	}
	return t.ready(now)
}

// CancelUnseen cancels a task for which a cancel came before the task itself
// did, at the time now of whichever of the two is later in the log.
func CancelUnseen(t *Task, reason string, now int64) Effects {
	var fx Effects
	t.CancelRequested, t.CancelReason = true, reason
	t.cancelled(now, &fx)
	return fx
}

func (t *Task) ready(now int64) Effects {
	t.State, t.ReadyAt = Ready, now
	return Effects{Trigger: true}
}

func (t *Task) park(now int64) Effects {
	t.State = Waiting
	t.Parkings++
	t.step(Step{Kind: StepParked, At: now, DueAt: t.DueAt})
	return Effects{Park: true}
}

// again makes a task ready at once after an attempt that does not count.
func (t *Task) again(now int64, fx *Effects) {
	if t.CancelRequested {
		t.cancelled(now, fx)
		return
	}
	t.State, t.ReadyAt = Ready, now
	fx.Trigger = true
}

// failed decides what follows an attempt that failed.
func (t *Task) failed(kind StepKind, message, errType string, final bool, delayMS, now int64, fx *Effects) {
	t.Failures++
	t.Lost = 0
	t.ErrMessage, t.ErrType = message, errType
	s := Step{Kind: kind, At: now, Grant: t.Version, Worker: t.Attempt.Worker, Message: message, ErrType: errType}
	switch {
	case t.CancelRequested:
		t.step(s)
		t.cancelled(now, fx)
	case !final && t.noTimeAt(now):
		t.step(s)
		t.lapse(now, fx)
	case final || t.Failures >= t.Policy.MaxAttempts:
		t.step(s)
		t.step(Step{Kind: StepDead, At: now, Message: message, ErrType: errType})
		t.finish(Dead, now, fx)
	default:
		wait := delayMS
		if wait <= 0 {
			wait = t.retryDelay()
		}
		if t.noTimeAt(now + wait) {
			t.step(s)
			t.lapse(now, fx)
			return
		}
		t.DueAt = now + wait
		s.DueAt = t.DueAt
		t.step(s)
		if wait > ParkAfterMS {
			fx.Park = t.park(now).Park
			return
		}
		t.State, t.ReadyAt = Backoff, t.DueAt
	}
}

// failedToCancel tells whether the failure of the last attempt ended the task, since its cancel had been
// asked for: it is without a next attempt in the history, and a cancel that came later is not reported.
func (t *Task) failedToCancel() bool {
	for i := len(t.Steps) - 1; i >= 0 && t.State == Cancelled; i-- {
		if s := &t.Steps[i]; s.Kind == StepFailed && s.Grant == t.Version {
			return s.DueAt == 0
		}
	}
	return false
}

// retryDelay is the wait after the latest failure in ms: exponential, capped,
// with a jitter of ±10 % taken from the task's id, so that tasks that failed
// together do not come back together, and yet every owner computes the same.
func (t *Task) retryDelay() int64 {
	p := t.Policy
	d := float64(p.InitialIntervalMS) * math.Pow(p.Backoff, float64(t.Failures-1))
	if limit := float64(p.MaxIntervalMS); !(d < limit) { // also NaN and +Inf
		d = limit
	}
	x := binary.BigEndian.Uint64(t.ID[8:]) + uint64(t.Failures)*0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	unit := float64(x>>11) / (1 << 53)
	return max(1, int64(d*(0.9+0.2*unit)))
}

// endAttempt notes how the running attempt ended and frees its slot.
func (t *Task) endAttempt(how Kind) Effects {
	t.Attempt.Ended = how
	return Effects{Release: t.Attempt.Limits, ReleaseVersion: t.Version}
}

func (t *Task) cancelled(now int64, fx *Effects) {
	t.step(Step{Kind: StepCancelled, At: now, Message: t.CancelReason})
	t.finish(Cancelled, now, fx)
}

func (t *Task) finish(s State, now int64, fx *Effects) {
	t.State, t.FinishedAt = s, now
	fx.Finish = true
}
