package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"
)

// How a failing Serve is called again. One that lasted for steadyAfter is not
// failing for the reason of the last time.
const (
	serveRetryFirst = 200 * time.Millisecond
	serveRetryLast  = 2 * time.Second
	steadyAfter     = 10 * time.Second
)

// assignment is the goroutines of the partitions being served. It belongs to one
// goroutine, that of Share.Run.
type assignment struct {
	ctx   context.Context // the parent of every Serve; lives as long as Run
	cfg   Config
	slots map[int]*slot
	// ended tells of goroutines that returned.
	ended chan int
}

type slot struct {
	cancel  context.CancelFunc
	leaving bool
}

func newAssignment(ctx context.Context, cfg Config) *assignment {
	return &assignment{ctx: ctx, cfg: cfg, slots: map[int]*slot{}, ended: make(chan int)}
}

// reconcile begins and ends serving so that it matches who is alive. A partition
// that came back while it is still draining begins when that is done.
func (a *assignment) reconcile(nodes []string) {
	owners := Assign(nodes, a.cfg.Count)
	for p := range a.cfg.Count {
		mine := owners[p] == a.cfg.Node
		s := a.slots[p]
		switch {
		case mine && s == nil:
			ctx, cancel := context.WithCancel(a.ctx)
			a.slots[p] = &slot{cancel: cancel}
			a.cfg.Log.Info("partition taken", "partition", p)
			go func() {
				a.serve(ctx, p)
				a.ended <- p
			}()
		case !mine && s != nil && !s.leaving:
			a.cfg.Log.Info("partition given away", "partition", p, "to", owners[p])
			s.leaving = true
			s.cancel()
		}
	}
}

// forget removes a partition whose goroutine returned.
func (a *assignment) forget(p int) {
	a.slots[p].cancel()
	delete(a.slots, p)
}

func (a *assignment) busy() bool { return len(a.slots) > 0 }

// serving is the partitions being served and not being given away, sorted.
func (a *assignment) serving() []int {
	var all []int
	for p, s := range a.slots {
		if !s.leaving {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}

// serve calls Serve until ctx ends, again after it failed.
func (a *assignment) serve(ctx context.Context, p int) {
	log := a.cfg.Log.With("partition", p)
	for wait := serveRetryFirst; ; wait = min(2*wait, serveRetryLast) {
		began := time.Now()
		err := guarded(ctx, log, p, a.cfg.Serve)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				log.Warn("a partition did not end cleanly", "error", err)
			}
			return
		}
		if time.Since(began) > steadyAfter {
			wait = serveRetryFirst
		}
		log.Error("a partition stopped being served, beginning again", "in", wait, "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// guarded turns a panic into an error: one bad partition must not take the node's
// others down, only to do the same on the next node.
func guarded(ctx context.Context, log *slog.Logger, p int, serve func(context.Context, int) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("serving a partition panicked", "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return serve(ctx, p)
}
