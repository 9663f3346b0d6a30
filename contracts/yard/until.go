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
	done   chan struct{}
	timer  *time.Timer

	mu       sync.Mutex
	deadline time.Time
	ended    bool
	then     map[*func()]struct{}
}

func newUntil(parent context.Context, deadline time.Time) *until {
	base, cancel := context.WithCancelCause(parent)
	u := &until{Context: base, cancel: cancel, done: make(chan struct{}), deadline: deadline, then: map[*func()]struct{}{}}
	u.timer = time.AfterFunc(time.Until(deadline), u.over)
	context.AfterFunc(base, u.end)
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

// end wakes those who wait.
func (u *until) end() {
	u.mu.Lock()
	u.ended = true
	close(u.done)
	then := u.then
	u.then = nil
	u.mu.Unlock()
	for f := range then {
		(*f)()
	}
}

// movedLeast is what a deadline must differ by to be another one: each answer has it again, and takes its time.
const movedLeast = 200 * time.Millisecond

// move gives it another deadline.
func (u *until) move(deadline time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if d := deadline.Sub(u.deadline).Abs(); d < movedLeast || u.ended {
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
	select {
	case <-u.done:
	default:
		return nil
	}
	if cause := context.Cause(u.Context); cause == context.DeadlineExceeded {
		return cause
	}
	return u.Context.Err()
}

// AfterFunc is what package context asks for, so that a context made from this one costs no goroutine.
func (u *until) AfterFunc(f func()) (stop func() bool) {
	key := &f
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		go f()
		return func() bool { return false }
	}
	u.then[key] = struct{}{}
	return func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		_, waits := u.then[key]
		delete(u.then, key)
		return waits
	}
}
