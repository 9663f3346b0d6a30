package yard

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard/internal/turns"
)

// dealer gives the free slots of a worker to the polls of its tasklists, in turn.
type dealer struct {
	slots *slots
	// turns and ends are guarded by the lock of the slots. ends are what ends the poll of a tasklist.
	turns *turns.Turns
	ends  []context.CancelFunc
	// given has what each tasklist was given.
	given []chan given
}

// given is a poll that may begin. Its context ends if the poll is withdrawn.
type given struct {
	turns.Turn
	ctx context.Context
}

func newDealer(w *Worker, s *slots) *dealer {
	weights := make([]int, len(w.tasklists))
	for i, name := range w.tasklists {
		weights[i] = max(w.cfg.weights[name], 1)
	}
	d := &dealer{slots: s, turns: turns.New(w.cfg.concurrency, requestTasksMax, weights), ends: make([]context.CancelFunc, len(weights)), given: make([]chan given, len(weights))}
	for i := range d.given {
		d.given[i] = make(chan given, 1)
	}
	return d
}

// reserve waits for slots for a poll of a tasklist. It returns no tasks if ctx has ended.
func (d *dealer) reserve(ctx context.Context, i int) given {
	d.slots.change(func() { d.turns.Want(i) })
	select {
	case g := <-d.given[i]:
		return g
	case <-ctx.Done():
		return given{}
	}
}

// done ends a poll that got so many tasks. It reports whether the poll was withdrawn.
func (d *dealer) done(i, got int) (withdrawn bool) {
	d.slots.change(func() {
		withdrawn = d.turns.Done(i, got)
		d.ends[i]()
	})
	return withdrawn
}

// run deals until ctx ends.
func (d *dealer) run(ctx context.Context) {
	again := time.AfterFunc(0, d.slots.wake)
	defer again.Stop()
	d.slots.await(ctx, func() bool {
		if at := d.deal(ctx); !at.IsZero() {
			again.Reset(time.Until(at))
		}
		return false
	})
}

// deal gives what is free. It returns when to deal again even if nothing changes; zero = never. The caller holds the lock of the slots.
func (d *dealer) deal(ctx context.Context) (again time.Time) {
	now := time.Now()
	for {
		turn, ok := d.turns.Next(now, d.slots.available())
		if !ok {
			break
		}
		d.slots.free -= turn.Tasks
		g := given{Turn: turn}
		g.ctx, d.ends[turn.List] = context.WithCancel(ctx)
		d.given[turn.List] <- g
	}
	if i, ok := d.turns.Withdraw(now); ok {
		d.ends[i]()
	}
	return d.turns.Wake(now)
}
