package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// However many requests wait for a batch, a process reads it about once a second for all of them: each takes what another
// one has found since it last looked itself.

// batchLookFirst and batchLookLast are how soon a request that waits for a batch looks at it again.
const batchLookFirst, batchLookLast = 20 * time.Millisecond, time.Second

// batchLooks are the last looks at batches that requests wait for.
type batchLooks struct {
	mu sync.Mutex
	of map[batchRef]*batchLook
}

// batchLook is one that was begun at an instant.
type batchLook struct {
	at   time.Time
	home func() (*logv1.BatchHome, error)
}

// batchRef is a batch of a domain.
type batchRef struct{ domain, id string }

// lookAt returns what a batch is, or was behind an instant.
func (g *Gateway) lookAt(of batchRef, since time.Time) (*logv1.BatchHome, error) {
	looks := &g.batchLooks
	looks.mu.Lock()
	look := looks.of[of]
	if look == nil || !look.at.After(since) {
		look = &batchLook{time.Now(), sync.OnceValues(func() (*logv1.BatchHome, error) {
			ctx, cancel := context.WithTimeout(g.base, g.Config.AppendTimeout)
			defer cancel()
			home, _, err := g.batchHome(ctx, of.domain, of.id)
			return home, err
		})}
		looks.of[of] = look
		time.AfterFunc(batchLookLast, func() {
			looks.mu.Lock()
			defer looks.mu.Unlock()
			if looks.of[of] == look {
				delete(looks.of, of)
			}
		})
	}
	looks.mu.Unlock()
	return look.home()
}

// awaitBatch returns a batch once it is over, or what it is at an instant; nil = it is gone.
func (g *Gateway) awaitBatch(ctx context.Context, of batchRef, until time.Time) (*logv1.BatchHome, error) {
	home, _, err := g.batchHome(ctx, of.domain, of.id) // a look of its own
	for delay := backoff.New(batchLookFirst, batchLookLast); err == nil && home != nil && home.EndedAtMs == 0; {
		looked := time.Now()
		backoff.Sleep(ctx, min(delay.Next(), time.Until(until)))
		if ctx.Err() != nil || !time.Now().Before(until) {
			return home, nil
		}
		home, err = g.lookAt(of, looked)
	}
	return home, err
}
