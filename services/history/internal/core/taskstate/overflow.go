package taskstate

import "github.com/yardmaster-io/yardmaster/contracts/fault"

// Matching, which knows the waiting tasks, asks for the action of a full limit. Here it is decided: an attempt that has begun meanwhile is not
// rejected, and of a task that was displaced the next attempt is not.

// waitsFor tells whether an event names the attempt that a task waits for, or waited for when it ended.
func (t *Task) waitsFor(e *Event) bool {
	return e.Fence.Version == t.Version+1 && e.Fence.Position.Same(t.Position)
}

// reject cancels a task that waits, and has waited for long enough.
func reject(t *Task, e *Event, now int64) (Verdict, Effects) {
	switch {
	case !t.waitsFor(e):
		return refuse(fault.Stale, "the trigger is out of date")
	case t.ReadyAt > e.ReadyBy || t.ReadyAt > now:
		return refuse(fault.FailedPrecondition, "the task has not waited for long enough")
	}
	return cancelIdle(t, e, now)
}

// displace asks for the end of an attempt.
func displace(t *Task, e *Event, now int64) (Verdict, Effects) {
	if e.Fence.Version != t.Version || !e.Fence.Position.Same(t.Position) {
		return refuse(fault.Stale, "another attempt is current")
	}
	return cancelRunning(t, e, now)
}
