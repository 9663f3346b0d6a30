package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// However many requests wait for a batch, a process looks at it once for all of them: soon at first, and then once a second. Each request has a
// first look of its own.

// How soon a batch that is waited for is looked at again.
const batchLookFirst, batchLookLast = 20 * time.Millisecond, time.Second

// batchWaits are the batches that are waited for.
type batchWaits struct {
	mu sync.Mutex
	of map[batchRef]*batchWait
}

// batchRef is a batch of a domain.
type batchRef struct{ domain, id string }

// batchWait is one that is looked at for all that wait for it.
type batchWait struct {
	waiters int
	// refreshed is closed by the next look, which leaves what it found.
	refreshed chan struct{}
	home      *logv1.BatchHome
	err       error
}

// join has a batch be looked at until leave is called.
func (g *Gateway) join(of batchRef) (w *batchWait, leave func()) {
	waits := &g.batchWaits
	waits.mu.Lock()
	defer waits.mu.Unlock()
	w = waits.of[of]
	if w == nil {
		if waits.of == nil {
			waits.of = map[batchRef]*batchWait{}
		}
		w = &batchWait{refreshed: make(chan struct{})}
		waits.of[of] = w
		go g.lookOut(of, w)
	}
	w.waiters++
	return w, func() {
		waits.mu.Lock()
		defer waits.mu.Unlock()
		w.waiters--
	}
}

// lookOut looks at a batch until no one waits for it.
func (g *Gateway) lookOut(of batchRef, w *batchWait) {
	for delay := backoff.New(batchLookFirst, batchLookLast); ; {
		delay.Sleep(g.base)
		g.batchWaits.mu.Lock()
		if w.waiters == 0 || g.base.Err() != nil {
			delete(g.batchWaits.of, of)
			g.batchWaits.mu.Unlock()
			return
		}
		g.batchWaits.mu.Unlock()
		ctx, cancel := context.WithTimeout(g.base, g.Config.AppendTimeout)
		home, _, err := g.batchHome(ctx, of.domain, of.id)
		cancel()
		g.batchWaits.mu.Lock()
		w.home, w.err = home, err
		close(w.refreshed)
		w.refreshed = make(chan struct{})
		g.batchWaits.mu.Unlock()
	}
}

// next waits for the next look at a batch, until an instant at most; then ok is false.
func (g *Gateway) next(ctx context.Context, w *batchWait, until time.Time) (home *logv1.BatchHome, ok bool, err error) {
	g.batchWaits.mu.Lock()
	refreshed := w.refreshed
	g.batchWaits.mu.Unlock()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-refreshed:
	case <-timer.C:
		return nil, false, nil
	case <-ctx.Done():
		return nil, false, nil
	}
	g.batchWaits.mu.Lock()
	defer g.batchWaits.mu.Unlock()
	return w.home, true, w.err
}

// awaitBatch returns a batch once it is over, or what it is at an instant; nil = it is gone.
func (g *Gateway) awaitBatch(ctx context.Context, of batchRef, until time.Time) (*logv1.BatchHome, error) {
	home, _, err := g.batchHome(ctx, of.domain, of.id)
	if err != nil || home == nil || home.EndedAtMs != 0 {
		return home, err
	}
	w, leave := g.join(of)
	defer leave()
	for {
		now, ok, err := g.next(ctx, w, until)
		switch {
		case !ok:
			return home, nil
		case err != nil:
			return nil, err
		case now == nil || now.EndedAtMs != 0:
			return now, nil
		}
		home = now
	}
}
