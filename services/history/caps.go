package history

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
)

// caps are the tasklists of all domains with a cap on their queue (max_queued).
type caps struct {
	now atomic.Pointer[backlog.Caps]

	mu       sync.Mutex
	of       map[backlog.Tasklist]int64
	settings *catalog.Catalog
}

// get returns them; nil where there are none.
func (c *caps) get() *backlog.Caps { return c.now.Load() }

// follow takes over what is set. Changes come to changed.
func (c *caps) follow(settings *catalog.Catalog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings, c.of = settings, map[backlog.Tasklist]int64{}
	for _, d := range settings.Domains() {
		c.take(d.Name)
	}
	c.now.Store(backlog.NewCaps(maps.Clone(c.of)))
}

// changed takes over what is set of a domain.
func (c *caps) changed(domain string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settings == nil {
		return // follow comes
	}
	before := maps.Clone(c.of)
	maps.DeleteFunc(c.of, func(l backlog.Tasklist, _ int64) bool { return l.Domain == domain })
	c.take(domain)
	if !maps.Equal(before, c.of) {
		c.now.Store(backlog.NewCaps(maps.Clone(c.of)))
	}
}

// take adds the tasklists of a domain.
func (c *caps) take(domain string) {
	for _, l := range c.settings.Tasklists(domain) {
		if l.MaxQueued > 0 {
			c.of[backlog.Tasklist{Domain: domain, Name: l.Name}] = int64(l.MaxQueued)
		}
	}
}
