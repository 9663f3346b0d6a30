package matching

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
)

const (
	// restPerSetting is for how long a domain's changes rest after one of them, for each type, tasklist and limit with settings. A shard
	// goes through all of them for each change, about 10 µs each, and does nothing for anyone meanwhile (I14).
	restPerSetting = 100 * time.Microsecond
	// restMax bounds that: an edit counts within about a second.
	restMax = time.Second
)

// changes are the domains of whose changed settings the shards have yet to hear, or heard a moment ago. They are safe for concurrent use.
type changes struct {
	mu      sync.Mutex
	domains map[string]*change
	wake    chan struct{}
}

// change is one of them.
type change struct {
	// waits: it changed since the shards heard of it. from is when they may hear of it again.
	waits bool
	from  time.Time
}

func newChanges() *changes {
	return &changes{domains: map[string]*change{}, wake: make(chan struct{}, 1)}
}

// changed notes that settings of a domain have changed. It does not block.
func (c *changes) changed(domain string) {
	c.mu.Lock()
	d := c.domains[domain]
	if d == nil {
		d = &change{}
		c.domains[domain] = d
	}
	d.waits = true
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // it is due to look anyway
	}
}

// run announces each domain that has changed, until ctx ends. Settings counts those of a domain.
func (c *changes) run(ctx context.Context, settings func(domain string) int, announce func(domain string)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
		due, next := c.take(settings)
		for _, domain := range due {
			announce(domain)
		}
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// take returns the domains that the shards are to hear of now, sorted, and when there are more, if nothing changes before; zero: never.
func (c *changes) take(settings func(domain string) int) (due []string, next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for domain, d := range c.domains {
		switch {
		case d.waits && !now.Before(d.from):
			d.waits, d.from = false, now.Add(min(time.Duration(settings(domain))*restPerSetting, restMax))
			due = append(due, domain)
		case d.waits:
			if next.IsZero() || d.from.Before(next) {
				next = d.from
			}
		case !now.Before(d.from):
			delete(c.domains, domain)
		}
	}
	slices.Sort(due)
	return due, next
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
