package taskstate

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// transition is one row of the table: in state From, an event On leads to one
// of To.
type transition struct {
	From State
	On   Kind
	To   []State
	// Fenced: only the holder of the current attempt may.
	Fenced bool
	do     func(t *Task, e *Event, now int64) (Verdict, Effects)
}

// transitions is the whole life of a task in history. A change that is not in the table
// is refused and changes nothing.
var transitions = []transition{
	{From: Ready, On: Started, To: []State{Running}, do: start},
	{From: Backoff, On: Started, To: []State{Running}, do: startDue},
	{From: Ready, On: Cancel, To: []State{Cancelled}, do: cancelIdle},
	{From: Backoff, On: Cancel, To: []State{Cancelled}, do: cancelIdle},
	{From: Running, On: Succeeded, To: []State{Completed}, Fenced: true, do: succeed},
	{From: Ready, On: Lapse, To: []State{Lapsed}, Fenced: true, do: lapse},
	{From: Backoff, On: Lapse, To: []State{Lapsed}, Fenced: true, do: lapse},
	{From: Running, On: Failed, To: []State{Backoff, Waiting, Dead, Cancelled, Lapsed}, Fenced: true, do: fail},
	{From: Running, On: Heartbeat, To: []State{Running}, Fenced: true, do: beat},
	{From: Running, On: Released, To: []State{Ready, Cancelled}, Fenced: true, do: release},
	{From: Running, On: Expired, To: []State{Running, Ready, Backoff, Waiting, Dead, Cancelled, Lapsed}, Fenced: true, do: expire},
	{From: Running, On: Cancel, To: []State{Running}, do: cancelRunning},
	{From: Ready, On: Reject, To: []State{Cancelled}, do: reject},
	{From: Backoff, On: Reject, To: []State{Cancelled}, do: reject},
	{From: Running, On: Displace, To: []State{Running}, do: displace},
	{From: Ready, On: Changed, To: []State{Ready, Backoff, Waiting}, do: changeIdle},
	{From: Backoff, On: Changed, To: []State{Ready, Backoff, Waiting}, do: changeIdle},
	{From: Running, On: Changed, To: []State{Running}, do: changeRunning},
	{From: Waiting, On: Changed, To: []State{Waiting}, do: changeWaiting},
	{From: Waiting, On: Cancel, To: []State{Cancelled}, do: cancelIdle},
	{From: Waiting, On: Skipped, To: []State{Waiting}, do: changeWaiting},
	{From: Waiting, On: Unblocked, To: []State{Waiting}, do: changeWaiting},
	{From: Ready, On: Skipped, To: []State{Ready, Dead}, do: skip},
	{From: Backoff, On: Skipped, To: []State{Backoff, Dead}, do: skip},
	{From: Running, On: Skipped, To: []State{Running}, do: skip},
	{From: Ready, On: Unblocked, To: []State{Ready}, do: unblock},
	{From: Backoff, On: Unblocked, To: []State{Backoff, Ready}, do: unblock},
	{From: Running, On: Unblocked, To: []State{Running}, do: unblock},
	{From: Waiting, On: Ended, To: []State{Completed, Dead, Cancelled}, do: endByHand},
	{From: Ready, On: Ended, To: []State{Completed, Dead, Cancelled}, do: endByHand},
	{From: Backoff, On: Ended, To: []State{Completed, Dead, Cancelled}, do: endByHand},
	{From: Running, On: Ended, To: []State{Completed, Dead, Cancelled}, do: endByHand},
}

// table is transitions by state and kind; absent pairs have a nil do.
var table = func() (byPair [Lapsed + 1][kinds]transition) {
	for _, row := range transitions {
		byPair[row.From][row.On] = row
	}
	return byPair
}()

// Apply applies one event of the log, stored at now (Unix ms), to t.
func Apply(t *Task, e *Event, now int64) (Verdict, Effects) {
	if e.Domain != "" && e.Domain != t.Domain {
		return notInDomain(), Effects{}
	}
	if v, repeated := t.repeated(e); repeated {
		return v, Effects{}
	}
	if !e.Kind.Known() || e.Kind == Fence {
		return refuse(fault.Internal, "unknown kind of event")
	}
	row := &table[t.State][e.Kind]
	if row.do == nil {
		return t.misfit(e)
	}
	if row.Fenced && !e.Fence.Same(t.Token()) {
		return refuse(fault.Stale, "another attempt is current")
	}
	return row.do(t, e, now)
}

// ApplyUnder applies an event of a turn that has terms of the type of t; nil = it has none. They hold for an attempt that starts or ends by it, and
// an event that is refused changes nothing.
func ApplyUnder(of *Terms, t *Task, e *Event, now int64) (Verdict, Effects) {
	was := t.Policy
	if e.Kind.ByPolicy() && t.State.Active() && (e.Kind == Started) != (t.State == Running) {
		t.Policy = of.over(was)
	}
	v, did := Apply(t, e, now)
	if v.Code != "" {
		t.Policy = was
	}
	return v, did
}

// repeated recognises an event that was applied before: the same asker repeats
// it since the answer was lost, and gets the same verdict (I4).
func (t *Task) repeated(e *Event) (Verdict, bool) {
	switch e.Kind {
	case Started:
		if t.State == Running && e.Fence.Same(t.Token()) {
			return Verdict{Granted: true, Repeated: true, LeaseUntil: t.WakeAt()}, true
		}
	case Succeeded, Failed, Released:
		if t.State != Running && t.Attempt.Ended == e.Kind && e.Fence.Same(t.Token()) {
			return Verdict{CancelRequested: e.Kind == Failed && t.failedToCancel()}, true
		}
	case Cancel:
		if t.State == Cancelled {
			return Verdict{}, true
		}
	case Changed, Skipped, Unblocked, Ended:
		if t.State.Finished() {
			return t.Again(e)
		}
	case Redrove:
		if t.RedrivenBy(e) {
			return Verdict{}, true
		}
	case Reject:
		if t.State == Cancelled && t.waitsFor(e) {
			return Verdict{}, true
		}
	}
	return Verdict{}, false
}

// misfit says why an event without a row in the table is refused.
func (t *Task) misfit(e *Event) (Verdict, Effects) {
	switch {
	case e.Kind == Redrove:
		return t.notDead()
	case e.Kind == Cancel || e.Kind.Changes():
		return refuse(fault.FailedPrecondition, "the task is "+t.State.String())
	case e.Kind == Started && t.State == Running:
		return refuse(fault.Stale, "granted to another poll")
	case e.Kind == Started:
		// One code for all that is late: whether a task that waited has come back, or was
		// cancelled, may not be read yet.
		return refuse(fault.Stale, "the task is "+t.State.String())
	}
	return refuse(fault.Stale, "the attempt is over: the task is "+t.State.String())
}

// ApplyToEarlierStay is the verdict on an event whose fence is of a stay before the
// current one: that stay is over, so nothing changes. The outcome that ended it gets its
// verdict again as long as no attempt has begun since.
func ApplyToEarlierStay(t *Task, e *Event) Verdict {
	if e.Domain != "" && e.Domain != t.Domain {
		return notInDomain()
	}
	last := ids.Token{Position: t.Before, Version: t.last(), Nonce: t.Attempt.Nonce}
	// A success ends the task. One that was handed back may have been skipped, and redriven.
	if e.Fence.Same(last) && (e.Kind == Failed || e.Kind == Released) && t.Attempt.Ended == e.Kind {
		return Verdict{}
	}
	return Verdict{Code: fault.Stale, Message: "the task has waited and come back since"}
}

func notInDomain() Verdict {
	return Verdict{Code: fault.NotFound, Message: "no such task in this domain"}
}

func start(t *Task, e *Event, now int64) (Verdict, Effects) {
	if e.Fence.Version != t.Version+1 || !e.Fence.Position.Same(t.Position) {
		return refuse(fault.Stale, "the trigger is out of date")
	}
	if t.lapsed(now) { // a copy of the grab may come earlier by the log's clock, which may be set back
		return refuse(fault.FailedPrecondition, "the task has expired")
	}
	o := t.Order()
	if o != nil && o.Blocked {
		return refuse(fault.Stale, "the task blocks its order key")
	}
	if e.TooMuch { // another poll may have it
		return refuse(fault.ResourceExhausted, "the task does not fit into the answer of the poll")
	}
	if o != nil {
		t.TakeTurn()
	}
	t.State = Running
	t.Version++
	t.begun()
	t.Attempt = Attempt{
		Nonce: e.Fence.Nonce, Worker: e.Worker, StartedAt: now,
		DeadlineAt: now + t.Policy.StartToCloseMS, Limits: e.Limits,
	}
	if by := t.Expiry().FinishBy; by > 0 {
		t.Attempt.DeadlineAt = min(t.Attempt.DeadlineAt, by)
	}
	if t.Policy.HeartbeatTimeoutMS > 0 {
		t.Attempt.BeatBy = now + t.Policy.HeartbeatTimeoutMS
	}
	t.step(Step{Kind: StepStarted, At: now, Grant: t.Grants(), Worker: e.Worker.Name()})
	return Verdict{Granted: true, LeaseUntil: t.WakeAt()}, Effects{}
}

func startDue(t *Task, e *Event, now int64) (Verdict, Effects) {
	if now < t.DueAt {
		return refuse(fault.FailedPrecondition, "the next attempt is not due yet")
	}
	return start(t, e, now)
}

func succeed(t *Task, e *Event, now int64) (Verdict, Effects) {
	fx := t.endAttempt(Succeeded)
	t.Result = e.Data
	t.ErrMessage, t.ErrType = "", ""
	t.step(Step{Kind: StepCompleted, At: now, Grant: t.Grants(), Worker: t.Attempt.Worker.Name()})
	t.finish(Completed, now, &fx)
	return Verdict{}, fx
}

func fail(t *Task, e *Event, now int64) (Verdict, Effects) {
	fx := t.endAttempt(Failed)
	if e.Snooze {
		t.snoozed(e, now, &fx)
		return Verdict{CancelRequested: t.CancelRequested}, fx
	}
	t.failed(&failure{kind: StepFailed, message: e.Message, errType: e.ErrType, final: e.NonRetryable, delayMS: e.DelayMS}, now, &fx)
	return Verdict{CancelRequested: t.CancelRequested}, fx
}

func beat(t *Task, e *Event, now int64) (Verdict, Effects) {
	if t.Policy.HeartbeatTimeoutMS > 0 {
		t.Attempt.BeatBy = now + t.Policy.HeartbeatTimeoutMS
	}
	if len(e.Data.Data) > 0 {
		t.Attempt.Progress = e.Data
	}
	return Verdict{CancelRequested: t.CancelRequested, LeaseUntil: t.WakeAt(), DeadlineAt: t.Attempt.DeadlineAt}, Effects{}
}

func release(t *Task, e *Event, now int64) (Verdict, Effects) {
	fx := t.endAttempt(Released)
	t.handBack(e.Message, now, &fx)
	return Verdict{}, fx
}

func expire(t *Task, e *Event, now int64) (Verdict, Effects) {
	if e.SilentLease > 0 && e.SilentLease != t.WakeAt() || e.SilentLease == 0 && now < t.WakeAt() {
		// A heartbeat came between: the lease goes on.
		return Verdict{Code: fault.FailedPrecondition, Message: "the lease was extended"}, Effects{}
	}
	if e.NotAfter > 0 && now > e.NotAfter {
		return refuse(fault.FailedPrecondition, "the log stood still when the lease ran out")
	}
	// An expiry may be proposed long after the worker fell silent: what ran out first counts.
	silent := e.SilentLease > 0 || t.WakeAt() < t.Attempt.DeadlineAt
	timedOut := now >= t.Attempt.DeadlineAt && !silent
	fx := t.endAttempt(Expired)
	switch {
	case e.Undelivered && t.Grants() <= UndeliveredMax && !t.Policy.neverAgain(timedOut):
		t.handBack("it may never have reached its worker", now, &fx)
	case timedOut:
		t.timedOut(now, &fx)
	default:
		t.lost(now, &fx)
	}
	return Verdict{}, fx
}

// timedOut ends an attempt that took too long, or took as long as its task had.
func (t *Task) timedOut(now int64, fx *Effects) {
	f := failure{kind: StepTimedOut, message: fmt.Sprintf("the attempt exceeded start_to_close (%v)", time.Duration(t.Attempt.DeadlineAt-t.Attempt.StartedAt)*time.Millisecond), errType: timeoutType}
	switch {
	case t.Attempt.DeadlineAt == t.Expiry().FinishBy:
		f.message = "the attempt exceeded finish_within"
	case t.Policy.OnTimeout == TimeoutDies:
		f.reason = byOnTimeout
	}
	t.failed(&f, now, fx)
}

// lost ends an attempt whose worker fell silent.
func (t *Task) lost(now int64, fx *Effects) {
	f := failure{kind: StepLost, message: "its worker fell silent", errType: lostType}
	switch t.Policy.OnLost {
	case LostDies:
		f.reason = byOnLost
		t.failed(&f, now, fx)
		return
	case LostFails:
		t.failed(&f, now, fx)
		return
	}
	t.Lost++
	t.step(Step{Kind: StepLost, At: now, Grant: t.Grants(), Worker: t.Attempt.Worker.Name()})
	switch {
	case t.Lost >= LostMax:
		t.ErrMessage, t.ErrType = "its workers fell silent too often", lostType
		t.die(t.ErrMessage, now, fx)
	case t.spent() && !t.CancelRequested:
		t.dieSpent(now, fx)
	default:
		t.again(now, fx)
	}
}

func cancelIdle(t *Task, e *Event, now int64) (Verdict, Effects) {
	var fx Effects
	t.CancelRequested, t.CancelReason = true, e.Message
	t.cancelled(now, &fx)
	return Verdict{}, fx
}

func cancelRunning(t *Task, e *Event, now int64) (Verdict, Effects) {
	if !t.CancelRequested {
		t.CancelRequested, t.CancelReason = true, e.Message
		t.step(Step{Kind: StepCancelRequested, At: now, Grant: t.Grants(), Message: e.Message})
	}
	return Verdict{CancelRequested: true}, Effects{}
}
