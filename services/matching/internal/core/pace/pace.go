// Package pace decides when the shards hear that settings of a domain have changed.
//
// Owns: which domains have changed since the shards heard of them, and from when on they may hear of each again.
//
// Never does: read settings. A shard gets the name of a domain; it reads what holds when it takes it in.
//
// On failure: nothing is kept. A shard that begins reads all settings.
package pace

import (
	"slices"
	"time"
)

const (
	// PerSetting is for how long a domain's changes rest after one of them, for each type, tasklist and limit with settings. A shard
	// goes through all of them for each change, about 10 µs each, and does nothing for anyone meanwhile (I14).
	PerSetting = 100 * time.Microsecond
	// RestMax bounds that: an edit counts within about a second.
	RestMax = time.Second
)

// Changes are the domains that have changed, or did so a moment ago. It is not safe for concurrent use.
type Changes struct {
	domains map[string]*domain
}

type domain struct {
	changed bool
	// from is when the shards may hear of it again.
	from time.Duration
}

// New makes an empty one.
func New() *Changes { return &Changes{domains: map[string]*domain{}} }

// Changed notes that settings of a domain have changed.
func (c *Changes) Changed(name string) {
	d := c.domains[name]
	if d == nil {
		d = &domain{}
		c.domains[name] = d
	}
	d.changed = true
}

// Take returns the domains that the shards are to hear of now, sorted. Settings counts those of a domain.
func (c *Changes) Take(now time.Duration, settings func(name string) int) (due []string) {
	for name, d := range c.domains {
		switch {
		case now < d.from:
		case d.changed:
			d.changed, d.from = false, now+min(time.Duration(settings(name))*PerSetting, RestMax)
			due = append(due, name)
		default:
			delete(c.domains, name)
		}
	}
	slices.Sort(due)
	return due
}

// Next is when there is something to take, if nothing changes before; false: nothing is.
func (c *Changes) Next() (at time.Duration, some bool) {
	for _, d := range c.domains {
		if d.changed && (!some || d.from < at) {
			at, some = d.from, true
		}
	}
	return at, some
}
