package matching

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pace"
)

// changes are the domains of whose changed settings the shards have yet to hear. They are safe for concurrent use.
type changes struct {
	mu   sync.Mutex
	pace *pace.Changes
	wake chan struct{}
}

func newChanges() *changes { return &changes{pace: pace.New(), wake: make(chan struct{}, 1)} }

// changed notes that settings of a domain have changed. It does not block.
func (c *changes) changed(domain string) {
	c.mu.Lock()
	c.pace.Changed(domain)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // it is due to look anyway
	}
}

// run announces each domain that has changed, until ctx ends. Settings counts those of a domain.
func (c *changes) run(ctx context.Context, settings func(domain string) int, announce func(domain string)) {
	began := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
		now := time.Since(began)
		c.mu.Lock()
		due := c.pace.Take(now, settings)
		next, some := c.pace.Next()
		c.mu.Unlock()
		for _, domain := range due {
			announce(domain)
		}
		if some {
			timer.Reset(next - now)
		}
	}
}

// limitsChanged tells all shards that settings of a domain have changed. One that has yet to hear of it before hears of it once.
func (s *Service) limitsChanged(domain string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.running {
		one.Put(func(in *match.Inputs) {
			if !slices.Contains(in.Limits, domain) {
				in.Limits = append(in.Limits, domain)
			}
		})
	}
}
