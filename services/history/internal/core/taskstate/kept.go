package taskstate

import (
	"cmp"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Kept is what a task remembers of tries in place: its worker keeps an attempt that has failed, and tries again. The task stays Running under the
// same token, and holds the same slots meanwhile. It is not changed any more: copies of a task share it.
type Kept struct {
	// Since is when the running attempt failed for the first time, Unix ms; 0 = it has not, or none runs.
	Since int64
	// Tries is how often an attempt of the task was tried again in place.
	Tries uint32
}

// Kept is what t remembers of tries in place; the zero one = there was none.
func (t *Task) Kept() Kept {
	if t.Extra == nil || t.Extra.Kept == nil {
		return Kept{}
	}
	return *t.Extra.Kept
}

func (t *Task) setKept(k Kept) { t.extra().Kept = &k }

// Attempts is how many attempts of t there were: each grant, and each try in place.
func (t *Task) Attempts() uint32 { return t.Grants() + t.Kept().Tries }

// tryAt is when the present try of the running attempt begins or began, Unix ms.
func (t *Task) tryAt() int64 {
	if t.Kept().Since > 0 {
		return t.DueAt
	}
	return t.Attempt.StartedAt
}

// running is now, or when the next try begins if the attempt waits for that.
func (t *Task) running(now int64) int64 {
	if t.Kept().Since > 0 {
		return max(now, t.DueAt)
	}
	return now
}

// mayKeep tells whether the worker of the attempt that has just failed may try again in place when t is due: within the time that its policy
// allows since the first failure, and not past a rate, which counts starts.
func (t *Task) mayKeep(now int64) bool {
	since := cmp.Or(t.Kept().Since, now)
	return t.Policy.PinnedForMS > 0 && !ids.Rated(t.Attempt.Nonce) && t.DueAt <= since+t.Policy.PinnedForMS
}

// keep lets the attempt go on: the next try begins when t is due.
func (t *Task) keep(now int64) {
	k := t.Kept()
	t.setKept(Kept{Since: cmp.Or(k.Since, now), Tries: k.Tries + 1})
	t.limitTry(t.DueAt)
}

// limitTry fixes until when the try that begins at an instant must be over, and its worker be heard.
func (t *Task) limitTry(at int64) {
	a := &t.Attempt
	a.DeadlineAt = at + t.Policy.StartToCloseMS
	if by := t.Expiry().FinishBy; by > 0 {
		a.DeadlineAt = min(a.DeadlineAt, by)
	}
	if t.Policy.HeartbeatTimeoutMS > 0 {
		a.BeatBy = at + t.Policy.HeartbeatTimeoutMS
	}
}

// keptBefore tells whether a failure is one that was counted before, and after which the attempt was kept: its worker knew of fewer.
func (t *Task) keptBefore(e *Event) bool {
	return e.Keep && t.State == Running && t.Kept().Since > 0 && t.Failures > e.Failures && e.Fence.Same(t.Token())
}

// keptVerdict tells a worker that it keeps the attempt, and when to try again.
func (t *Task) keptVerdict() Verdict {
	return Verdict{
		CancelRequested: t.CancelRequested, RetryAt: t.DueAt, Failures: t.Failures, LeaseUntil: t.WakeAt(), DeadlineAt: t.Attempt.DeadlineAt,
	}
}
