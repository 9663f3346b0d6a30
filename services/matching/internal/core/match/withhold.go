package match

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// A group that is paused has no triggers here: those that come are let go, so however many wait cost nothing. History has
// them, and sends them again when the group goes on. Columns that groups share may hold some from before: they are forgotten, as
// what was taken out of them is, and history sends all triggers of the domain again.

// pauseGroups takes over which groups of a domain are paused.
func (s *Shard) pauseGroups(d *domain) {
	before := d.withheld
	d.withheld = s.catalog.PausedGroups(d.Name)
	for group := range before {
		if !d.withheld[group] {
			d.Retrigger()
			break
		}
	}
	for group := range d.withheld {
		if !before[group] {
			s.cleanse(d)
			break
		}
	}
}

// holdsPaused tells whether a column may hold triggers of groups that are paused.
func (d *domain) holdsPaused(at table.Column) bool { return at.Group == "" || d.withheld[at.Group] }

// cleanse lets go of all triggers that may be of groups that are paused.
func (s *Shard) cleanse(d *domain) {
	d.UnreadAll()
	s.arrivals.All = s.arrivals.Release(s.arrivals.All, func(a *arrived) bool { return a.List.domain == d && a.Unknown() })
	d.ReleasePaused(d.holdsPaused)
	s.endAll(s.grabs.Withdraw(func(r *request) bool { return r.From.List.domain == d && d.holdsPaused(r.From.Column) }))
	s.grabs.ForgetAside(func(c *table.Chunk) bool { return c.Domain == d.Name && d.holdsPaused(c.Column) })
	s.grabs.DropStops(d.Domain, d.holdsPaused)
	d.ClearPaused(d.withheld)
	d.Retrigger()
}

// withhold reports whether what was taken from a table is released: it may be of a group that is paused.
func (s *Shard) withhold(t *taken) bool {
	withheld, again := t.Withheld()
	if again {
		t.List.domain.Retrigger()
	}
	return withheld
}
