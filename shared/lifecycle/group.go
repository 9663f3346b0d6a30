package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// DrainTimeoutDefault is how long a part may take to return once its context is
// cancelled.
const DrainTimeoutDefault = 20 * time.Second

// Runner is one long-lived part of a process. Run blocks until the part is done,
// its context is cancelled, or it failed. A part that is cancelled finishes what it
// has begun and returns nil or the context's error; both mean a clean stop. A part
// that returns nil by itself has done its work; the others go on without it.
//
// A Runner may also have the method Ready() <-chan struct{}: then the group starts
// the next part only after that channel is closed, or the part has returned nil.
type Runner interface {
	Run(ctx context.Context) error
}

// Func makes a Runner of a function.
type Func func(ctx context.Context) error

// Run calls the function.
func (f Func) Run(ctx context.Context) error { return f(ctx) }

// readier is the optional method of a Runner.
type readier interface {
	Ready() <-chan struct{}
}

// Group is an ordered list of parts. The zero value is an empty group ready for
// use. A Group is itself a Runner with Ready, so groups nest. It runs once.
type Group struct {
	// DrainTimeout bounds the stop of each part, not of the whole group; 0 means
	// DrainTimeoutDefault. Too short cuts off requests under way, too long and the
	// platform kills the process before it has handed over.
	DrainTimeout time.Duration

	parts []part

	mu    sync.Mutex
	ready chan struct{}
}

type part struct {
	name   string
	runner Runner
}

// Add appends a part. The name is for errors. Adding to a running group has no
// effect on it.
func (g *Group) Add(name string, r Runner) {
	g.parts = append(g.parts, part{name, r})
}

// Ready is closed when every part has been started and is ready.
func (g *Group) Ready() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ready == nil {
		g.ready = make(chan struct{})
	}
	return g.ready
}

// Run starts the parts in order and returns after they have been stopped in
// reverse order: when ctx is done, when a part fails, or when every part has
// returned. The error is that of the first part that failed, joined by those that
// came up while stopping; it is nil after a clean stop.
func (g *Group) Run(ctx context.Context) error {
	r := &run{failed: make(chan struct{})}
	if g.start(ctx, r) {
		close(g.ready) // made by start
		r.await(ctx, r.allEnded())
	}
	return r.stop(cmp.Or(g.DrainTimeout, DrainTimeoutDefault))
}

// start reports whether all parts came up; if not, the group has to stop.
func (g *Group) start(ctx context.Context, r *run) bool {
	g.Ready()
	for _, p := range g.parts {
		if ctx.Err() != nil {
			return false
		}
		if up := r.start(ctx, p); !r.await(ctx, up) {
			return false
		}
	}
	return true
}

// run is one life of a group.
type run struct {
	started []*running

	failOnce sync.Once
	failed   chan struct{} // closed when first is set
	first    error
}

// running is a part that was started.
type running struct {
	name   string
	cancel context.CancelFunc
	ended  chan struct{} // closed when the part has returned and err is set
	err    error
}

// start starts one part and returns a channel that is closed when the next one
// may start.
func (r *run) start(ctx context.Context, p part) <-chan struct{} {
	// The part outlives the cancellation of ctx until its turn to stop comes.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	at := &running{name: p.name, cancel: cancel, ended: make(chan struct{})}
	r.started = append(r.started, at)
	go func() {
		err := errGoexit // until Run has returned, which Goexit keeps it from
		defer func() {
			if err != nil && !(ctx.Err() != nil && errors.Is(err, context.Canceled)) {
				at.err = fmt.Errorf("%s: %w", p.name, err)
				r.fail(at.err)
			}
			close(at.ended)
		}()
		err = runSafely(ctx, p.runner)
	}()
	return at.up(p.runner)
}

// up is closed when the part is ready or has ended. A failed part closes it too,
// but await looks at failures first.
func (at *running) up(runner Runner) <-chan struct{} {
	up := make(chan struct{})
	announces, ok := runner.(readier)
	if !ok {
		close(up)
		return up
	}
	ready := announces.Ready()
	go func() {
		defer close(up)
		select {
		case <-ready:
		case <-at.ended:
		}
	}()
	return up
}

func (r *run) fail(err error) {
	r.failOnce.Do(func() {
		r.first = err
		close(r.failed)
	})
}

// await waits for until to close and reports whether the group may go on: false
// if ctx is done or a part has failed.
func (r *run) await(ctx context.Context, until <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.failed:
		return false
	case <-until:
	}
	select {
	case <-r.failed:
		return false
	default:
		return true
	}
}

func (r *run) allEnded() <-chan struct{} {
	all := make(chan struct{})
	go func() {
		defer close(all)
		for _, at := range r.started {
			select {
			case <-at.ended:
			case <-r.failed:
				return // the stop has begun and does its own waiting
			}
		}
	}()
	return all
}

// stop cancels the parts one by one, the last first, each after the one before
// has returned or used up its time.
func (r *run) stop(timeout time.Duration) error {
	var all []error
	for _, at := range slices.Backward(r.started) {
		at.cancel()
		all = append(all, at.awaitEnd(timeout))
	}
	// The first failure may have come before the stop or during it. Either way it
	// leads, and is not reported twice.
	var first error
	select {
	case <-r.failed:
		first = r.first
	default:
	}
	others := slices.DeleteFunc(all, func(err error) bool { return err == first }) // the very same value, not its kind
	return errors.Join(append([]error{first}, others...)...)
}

func (at *running) awaitEnd(timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-at.ended:
		return at.err
	case <-timer.C:
		return fmt.Errorf("%s: %w within %v", at.name, ErrDrainTimeout, timeout)
	}
}
