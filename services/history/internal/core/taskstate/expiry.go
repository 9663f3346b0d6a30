package taskstate

import "github.com/yardmaster-io/yardmaster/contracts/fault"

// Expiry is the time that a task has: to begin, and to be completed. The durations, in ms, count from when it is due,
// or from when the log stored its submit if that was due at once; 0 = no limit. The instants, Unix ms, are known once its
// submit is read.
//
// A time that is over ends the task in Lapsed. The owner's clock sees that first, and proposes it to
// the log (Lapse); the log's own time decides. Until then no attempt begins all the same: a grab that the log stored
// after the instant is refused. An attempt that runs ends at FinishBy at the latest, and a failure that leaves no
// time for another attempt ends the task at once.
type Expiry struct {
	StartWithinMS, FinishWithinMS int64
	StartBy, FinishBy             int64
}

// Expiry is the time that t has; the zero one = no limit.
func (t *Task) Expiry() Expiry { return t.Extra.orNothing().Expiry }

// limitTime fixes until when t may begin and be completed; its submit was stored at now.
func (t *Task) limitTime(now int64) {
	if t.Extra == nil {
		return
	}
	x, due := &t.Extra.Expiry, max(now, t.DueAt)
	if x.StartWithinMS > 0 && x.StartBy == 0 {
		x.StartBy = due + x.StartWithinMS
	}
	if x.FinishWithinMS > 0 && x.FinishBy == 0 {
		x.FinishBy = due + x.FinishWithinMS
	}
}

// LapsesAt is when t ends unless an attempt begins before; 0 = never. An attempt that was handed back had not begun.
func (t *Task) LapsesAt() int64 {
	x := t.Expiry()
	if begun := t.Failures > 0 || t.Lost > 0; begun || x.StartBy == 0 || x.FinishBy > 0 && x.FinishBy < x.StartBy {
		return x.FinishBy
	}
	return x.StartBy
}

// lapsed tells whether the time of t is over.
func (t *Task) lapsed(now int64) bool {
	at := t.LapsesAt()
	return at > 0 && now >= at
}

// noTimeAt tells whether an attempt at due would begin too late for t to be completed.
func (t *Task) noTimeAt(due int64) bool {
	by := t.Expiry().FinishBy
	return by > 0 && due >= by
}

// The error types of the step that ends a task whose time is over.
const (
	startWithin  = "start_within"
	finishWithin = "finish_within"
)

// lapse ends t, whose time is over or does not suffice.
func (t *Task) lapse(now int64, fx *Effects) {
	s := Step{Kind: StepLapsed, At: now, Message: "it was not completed in time", ErrType: finishWithin}
	if t.LapsesAt() != t.Expiry().FinishBy {
		s.Message, s.ErrType = "it did not start in time", startWithin
	}
	t.step(s)
	t.finish(Lapsed, now, fx)
}

func lapse(t *Task, _ *Event, now int64) (Verdict, Effects) {
	if !t.lapsed(now) {
		return refuse(fault.FailedPrecondition, "the task has time left")
	}
	var fx Effects
	t.lapse(now, &fx)
	return Verdict{}, fx
}
