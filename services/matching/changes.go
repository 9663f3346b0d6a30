package matching

import (
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
)

const (
	// restPerSetting is for how long a domain's changes rest after one of them, for each type, tasklist and limit with settings. A shard
	// goes through all of them for each change, about 10 µs each, and does nothing for anyone meanwhile (I14).
	restPerSetting = 100 * time.Microsecond
	// restMax bounds that: an edit counts within about a second.
	restMax = time.Second
)

// changes has the shards hear of the domains whose settings have changed. It is safe for concurrent use.
type changes struct {
	// settings counts those of a domain, announce has the shards hear of it.
	settings func(domain string) int
	announce func(domain string)

	mu sync.Mutex
	// waits are the domains that rest, and whether they have changed since the shards heard of them.
	waits map[string]bool
}

func newChanges(settings func(domain string) int, announce func(domain string)) *changes {
	return &changes{settings: settings, announce: announce, waits: map[string]bool{}}
}

// changed notes that settings of a domain have changed. It does not block.
func (c *changes) changed(domain string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, rests := c.waits[domain]; !rests {
		time.AfterFunc(0, func() { c.end(domain) })
	}
	c.waits[domain] = true
}

// end ends the rest of a domain. One that has changed is announced, and rests again.
func (c *changes) end(domain string) {
	c.mu.Lock()
	waits := c.waits[domain]
	if c.waits[domain] = false; !waits {
		delete(c.waits, domain)
	}
	c.mu.Unlock()
	if waits {
		time.AfterFunc(min(time.Duration(c.settings(domain))*restPerSetting, restMax), func() { c.end(domain) })
		c.announce(domain)
	}
}

// settings counts the types, tasklists and limits of a domain with settings.
func (s *Service) settings(domain string) int {
	types := s.types.Load()
	if types == nil { // they are being read
		return 0
	}
	return catalog.Types.Count(types, domain) + catalog.Tasklists.Count(types, domain) + catalog.Limits.Count(types, domain)
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
