package taskstate

import "github.com/yardmaster-io/yardmaster/contracts/ids"

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
		if FiredEarly(t) { // what its commands leave of it goes on waiting
			t.State = Waiting
			t.Parkings++
			return Effects{Park: true}
		}
		t.step(Step{Kind: StepFired, At: now})
		return t.ready(now)
	}
	asked := t.Attempt // that which is to begin with the submit
	t.Attempt = Attempt{}
	t.limitTime(now)
	t.step(Step{Kind: StepSubmitted, At: now})
	if t.DueAt > now {
		return t.park(now)
	}
	return startDirectly(t, asked, t.ready(now), now)
}

// FiredEarly reports whether t, which has just come back, was fired for a command. It goes back into the timer store, also if it is due by now: only the lane
// of its priority, or of order keys, has it in its place.
func FiredEarly(t *Task) bool { return t.Parkings > 0 && t.Position.Lane() == ids.LaneLater }

func (t *Task) ready(now int64) Effects {
	t.State, t.ReadyAt = Ready, now
	return Effects{Trigger: true}
}

// park lets t wait in the timer store until it is due. There it blocks no other: it joins the line of its order key when it comes back. But once an
// attempt of it has begun, it keeps its turn, so it waits here.
func (t *Task) park(now int64) Effects {
	if t.Order() != nil && t.Grants() > 0 {
		t.State, t.ReadyAt = Backoff, t.DueAt
		return Effects{}
	}
	t.State = Waiting
	t.Parkings++
	t.step(Step{Kind: StepParked, At: now, DueAt: t.DueAt})
	return Effects{Park: true}
}

// handBack makes a task ready again after a grant that does not count.
func (t *Task) handBack(message string, now int64, fx *Effects) {
	t.HandedBack++
	t.step(Step{Kind: StepHandedBack, At: now, Grant: t.Grants(), Worker: t.Attempt.Worker.Name(), Message: message})
	t.again(now, fx)
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

// failure is an attempt that failed.
type failure struct {
	kind             StepKind
	message, errType string
	// final: the worker wants no other attempt. reason: the policy allows none, whatever the error type; "" = it may.
	final   bool
	reason  string
	delayMS int64
}

// failed decides what follows an attempt that failed.
func (t *Task) failed(f *failure, now int64, fx *Effects) {
	t.Failures++
	t.Lost = 0
	t.ErrMessage, t.ErrType = f.message, f.errType
	s := Step{Kind: f.kind, At: now, Grant: t.Grants(), Worker: t.Attempt.Worker.Name(), Message: f.message, ErrType: f.errType}
	reason, last := t.ends(f)
	switch {
	case t.CancelRequested:
		t.step(s)
		t.cancelled(now, fx)
	case !f.final && t.noTimeAt(now):
		t.step(s)
		t.lapse(now, fx)
	case last:
		t.step(s)
		t.die(reason, now, fx)
	case t.spent():
		t.step(s)
		t.dieSpent(now, fx)
	default:
		t.backOff(s, f.delayMS, now, fx)
	}
}

// ends tells whether no attempt follows a failure, and why, for its history.
func (t *Task) ends(f *failure) (reason string, last bool) {
	of, byRule := t.Policy.forError(f.errType)
	switch {
	case f.final:
		return f.message, true
	case f.reason != "":
		return f.reason, true
	case t.Policy.nonRetryable(f.errType):
		return byNonRetryable, true
	case t.Failures >= of.MaxAttempts && byRule != "":
		return byRule, true
	}
	return f.message, t.Failures >= of.MaxAttempts
}

// die makes t a dead letter for a reason, or lets it block its order key; its error is set already.
func (t *Task) die(reason string, now int64, fx *Effects) {
	if t.blocks() {
		t.block(reason, now)
		return
	}
	t.step(Step{Kind: StepDead, At: now, Message: reason, ErrType: t.ErrType})
	t.finish(Dead, now, fx)
}

// dieSpent makes t a dead letter that was given to workers as often as it may.
func (t *Task) dieSpent(now int64, fx *Effects) {
	t.ErrMessage, t.ErrType = byDeliveries, maxDeliveriesType
	t.die(byDeliveries, now, fx)
}

// snoozed lets t wait after an attempt that found nothing to do yet. The count of lost ones begins again, and one is left of them, if there was any:
// then the task has begun.
func (t *Task) snoozed(e *Event, now int64, fx *Effects) {
	t.Lost = min(t.Lost, 1)
	s := Step{Kind: StepSnoozed, At: now, Grant: t.Grants(), Worker: t.Attempt.Worker.Name(), Message: e.Message}
	switch {
	case t.CancelRequested:
		t.step(s)
		t.cancelled(now, fx)
	case t.spent():
		t.step(s)
		t.dieSpent(now, fx)
	default:
		t.backOff(s, max(1, e.DelayMS), now, fx)
	}
}

// backOff lets t wait for its next attempt; s is the step of what ended the last one.
func (t *Task) backOff(s Step, wait, now int64, fx *Effects) {
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

// HowExpired is how the last attempt ended, if it ended without its worker's word: StepTimedOut, StepLost or StepHandedBack.
func (t *Task) HowExpired() StepKind {
	for i := len(t.Steps) - 1; i >= 0; i-- {
		switch kind := t.Steps[i].Kind; kind {
		case StepTimedOut, StepLost, StepHandedBack:
			return kind
		}
	}
	return 0
}

// failedToCancel tells whether the failure of the last attempt ended the task, since its cancel had been
// asked for: it is without a next attempt in the history, and a cancel that came later is not reported.
func (t *Task) failedToCancel() bool {
	for i := len(t.Steps) - 1; i >= 0 && t.State == Cancelled; i-- {
		if s := &t.Steps[i]; (s.Kind == StepFailed || s.Kind == StepSnoozed) && s.Grant == t.Grants() {
			return s.DueAt == 0
		}
	}
	return false
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
