package match

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// A group that is paused has no triggers here: those that come are let go, so however many wait cost nothing. History has
// them, and sends them again when the group goes on. Columns that groups share may hold some from before: they are forgotten, as
// what was taken out of them is, and history sends all triggers of the domain again.

// withhold takes over which groups of a domain are paused.
func (s *Shard) withhold(d *domain) {
	before := d.withheld
	d.withheld = s.catalog.PausedGroups(d.Name)
	for group := range before {
		if !d.withheld[group] {
			s.sendAgain(d.Name)
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
	d.Domain.UnreadAll()
	s.arrivals.All = s.arrivals.Release(s.arrivals.All, func(a *arrived) bool { return a.List.domain == d && a.Unknown() })
	holds := func(a *arrived) bool { return d.holdsPaused(a.Column) }
	known := func(a *arrived) bool { return holds(a) && a.Known() }
	d.held, d.puts = s.arrivals.Recall(d.held, known), s.arrivals.Recall(d.puts, d.unput(known))
	d.held, d.puts = s.arrivals.Release(d.held, holds), s.arrivals.Release(d.puts, d.unput(holds))
	s.endAll(s.grabs.Withdraw(func(r *request) bool { return r.From.List.domain == d && d.holdsPaused(r.From.Column) }))
	s.grabs.ForgetAside(func(c *table.Chunk) bool { return c.Domain == d.Name && d.holdsPaused(c.Column) })
	s.grabs.DropStops(d.Domain, d.holdsPaused)
	for i := range s.taken {
		t := &s.taken[i]
		t.stale = t.stale || t.list.domain == d
	}
	if d.call != nil {
		d.call.Stale = true
	}
	for _, l := range d.lists {
		all := l.index.OfGroups(d.withheld)
		for _, c := range l.index.Candidates(l.index.Columns(), func(at table.Column) bool { return at.Group != "" }) {
			if c.Group == "" {
				all = append(all, c.Column)
			}
		}
		for _, at := range all {
			l.index.Remove(at)
			l.ForgetParked(at)
			d.clears = append(d.clears, table.Place{Tasklist: l.Tasklist, Column: at})
			if at.Group == "" {
				l.ranks.Forget(at)
			}
		}
	}
	s.sendAgain(d.Name)
}

// withhold tells whether what was taken from a table is let go: it may be of a group that is paused.
func (t *taken) withhold(s *Shard) bool {
	d := t.list.domain
	if t.stale && t.chunk.Group == "" { // the one that it was taken from was forgotten meanwhile
		s.sendAgain(d.Name)
		return true
	}
	return d.withheld[t.chunk.Group]
}

// putAgain are the parts of a call that was not made that arrive again: not those of groups that are not known, if the call is stale.
func (s *Shard) putAgain(c *call) []arrived {
	if c.Stale {
		return s.arrivals.Release(c.Puts, (*arrived).Unknown)
	}
	return c.Puts
}
