package batches

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
func (b *Batches) join(of batchRef) (w *batchWait, leave func()) {
	waits := &b.batchWaits
	waits.mu.Lock()
	defer waits.mu.Unlock()
	w = waits.of[of]
	if w == nil {
		if waits.of == nil {
			waits.of = map[batchRef]*batchWait{}
		}
		w = &batchWait{refreshed: make(chan struct{})}
		waits.of[of] = w
		go b.lookOut(of, w)
	}
	w.waiters++
	return w, func() {
		waits.mu.Lock()
		defer waits.mu.Unlock()
		w.waiters--
	}
}

// lookOut looks at a batch until no one waits for it.
func (b *Batches) lookOut(of batchRef, w *batchWait) {
	for delay := backoff.New(batchLookFirst, batchLookLast); ; {
		delay.Sleep(b.Run.Base())
		b.batchWaits.mu.Lock()
		if w.waiters == 0 || b.Run.Base().Err() != nil {
			delete(b.batchWaits.of, of)
			b.batchWaits.mu.Unlock()
			return
		}
		b.batchWaits.mu.Unlock()
		ctx, cancel := context.WithTimeout(b.Run.Base(), b.AppendTimeout)
		home, _, err := b.Homes.Home(ctx, of.domain, of.id)
		cancel()
		b.batchWaits.mu.Lock()
		w.home, w.err = home, err
		close(w.refreshed)
		w.refreshed = make(chan struct{})
		b.batchWaits.mu.Unlock()
	}
}

// next waits for the next look at a batch, until an instant at most; then ok is false.
func (b *Batches) next(ctx context.Context, w *batchWait, until time.Time) (home *logv1.BatchHome, ok bool, err error) {
	b.batchWaits.mu.Lock()
	refreshed := w.refreshed
	b.batchWaits.mu.Unlock()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-refreshed:
	case <-timer.C:
		return nil, false, nil
	case <-ctx.Done():
		return nil, false, nil
	}
	b.batchWaits.mu.Lock()
	defer b.batchWaits.mu.Unlock()
	return w.home, true, w.err
}

// awaitBatch returns a batch once it is over, or what it is at an instant; nil = it is gone.
func (b *Batches) awaitBatch(ctx context.Context, of batchRef, until time.Time) (*logv1.BatchHome, error) {
	home, _, err := b.Homes.Home(ctx, of.domain, of.id)
	if err != nil || home == nil || home.EndedAtMs != 0 {
		return home, err
	}
	w, leave := b.join(of)
	defer leave()
	for {
		now, ok, err := b.next(ctx, w, until)
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
