package partition

import (
	"context"
	"sync"
)

// gate pauses a lane's reader while the window is full (I7). It has room again as
// tasks are done; up to the sequence `must` it lets everything through, for tasks of which
// events have been seen already.
type gate struct {
	max int

	mu   sync.Mutex
	n    int
	must uint64
	open chan struct{} // closed and replaced when there may be room
}

func newGate(limit int) *gate { return &gate{max: limit, open: make(chan struct{})} }

// enter waits for room, then takes it for n tasks of the message at seq.
func (g *gate) enter(ctx context.Context, seq uint64, n int) error {
	for {
		g.mu.Lock()
		if g.max == 0 || g.n < g.max || seq <= g.must {
			g.n += n
			g.mu.Unlock()
			return nil
		}
		wait := g.open
		g.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leave gives the room of n tasks back.
func (g *gate) leave(n int) {
	g.mu.Lock()
	was := g.n
	g.n -= n
	if g.max > 0 && was >= g.max && g.n < g.max {
		g.wake()
	}
	g.mu.Unlock()
}

// demand lets messages up to seq through whatever the window holds.
func (g *gate) demand(seq uint64) {
	g.mu.Lock()
	if seq > g.must {
		g.must = seq
		g.wake()
	}
	g.mu.Unlock()
}

func (g *gate) wake() {
	close(g.open)
	g.open = make(chan struct{})
}

// shut tells whether the reader is, or would be, paused.
func (g *gate) shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.max > 0 && g.n >= g.max
}
