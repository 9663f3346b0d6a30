package yard

import (
	"context"
	"sync"
	"time"
)

// until is the context of a handler: it ends with its parent, or at a deadline that may be moved meanwhile. Contexts made from it
// end with the same error and cause.
type until struct {
	context.Context
	cancel context.CancelCauseFunc
	// done is not that of the Context inside, or contexts made from it would end with the error of that.
	done  chan struct{}
	timer *time.Timer

	mu       sync.Mutex
	deadline time.Time
}

func newUntil(parent context.Context, deadline time.Time) *until {
	base, cancel := context.WithCancelCause(parent)
	u := &until{Context: base, cancel: cancel, done: make(chan struct{}), deadline: deadline}
	u.timer = time.AfterFunc(time.Until(deadline), u.over)
	context.AfterFunc(base, func() { close(u.done) })
	return u
}

// over ends it at its deadline, unless that has been moved.
func (u *until) over() {
	u.mu.Lock()
	left := time.Until(u.deadline)
	u.mu.Unlock()
	if left > 0 {
		u.timer.Reset(left)
		return
	}
	u.cancel(context.DeadlineExceeded)
}

// movedLeast is what a deadline must differ by to be another one: each answer has it again, and takes its time.
const movedLeast = 200 * time.Millisecond

// move gives it another deadline.
func (u *until) move(deadline time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if d := deadline.Sub(u.deadline).Abs(); d < movedLeast || u.Context.Err() != nil {
		return
	}
	u.deadline = deadline
	u.timer.Reset(time.Until(deadline))
}

// stop lets go of its timer, once the handler has returned.
func (u *until) stop() {
	u.timer.Stop()
	u.cancel(nil)
}

// Deadline is the present one.
func (u *until) Deadline() (time.Time, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.deadline, true
}

// Done is closed at the end.
func (u *until) Done() <-chan struct{} { return u.done }

// Err is context.DeadlineExceeded at the deadline.
func (u *until) Err() error {
	if u.Context.Err() == nil {
		return nil
	}
	<-u.done // it is closed soon: there is no error before
	if cause := context.Cause(u.Context); cause == context.DeadlineExceeded {
		return cause
	}
	return u.Context.Err()
}

// AfterFunc is what package context asks for, so that a context made from this one costs no goroutine.
func (u *until) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(u.Context, f) }
