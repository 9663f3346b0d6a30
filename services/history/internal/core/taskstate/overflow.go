package taskstate

import (
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

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

// Path is the limits in which a slot is booked for an attempt, such as "type/email.send". It is
// what is released when the attempt is over, whatever the limits are by then. Attempts share it, so it
// is never changed; nil = nothing is booked.
type Path struct {
	refs []string
	text string
}

// NewPath is the path of refs, which it keeps; nil of none.
func NewPath(refs ...string) *Path {
	if len(refs) == 0 {
		return nil
	}
	return &Path{refs: refs, text: strings.Join(refs, " ")}
}

// Refs are the limits, in order; they must not be changed.
func (p *Path) Refs() []string {
	if p == nil {
		return nil
	}
	return p.refs
}

// String tells paths apart: a limit's name has no space in it.
func (p *Path) String() string {
	if p == nil {
		return ""
	}
	return p.text
}
