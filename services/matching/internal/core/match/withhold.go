package match

import (
	"slices"

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
	s.letGoUnknown(d)
	s.endAll(s.grabs.Withdraw(func(r *request) bool { return r.From.List.domain == d && d.holdsPaused(r.From.Column) }))
	s.grabs.ForgetAside(func(c *table.Chunk) bool { return c.Domain == d.Name && d.holdsPaused(c.Column) })
	s.grabs.DropStops(d.Domain, d.holdsPaused)
	for i := range s.taken {
		t := &s.taken[i]
		t.stale = t.stale || t.list.domain == d
	}
	if d.call != nil {
		d.call.stale = true
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

// letGoUnknown lets go of what is on its way into columns that groups share, and is of groups that are not known. The rest arrives again,
// and is sorted out then.
func (s *Shard) letGoUnknown(d *domain) {
	s.arrivals = slices.DeleteFunc(s.arrivals, func(a arrival) bool {
		out := a.list.domain == d && a.Group == "" && !a.known
		if out {
			s.finishPart(a.from, true)
		}
		return out
	})
	sort := func(all []arrival, putting bool) []arrival {
		return slices.DeleteFunc(all, func(a arrival) bool {
			if !d.holdsPaused(a.Column) {
				return false
			}
			if putting {
				a.list.putting--
			}
			if a.known {
				s.arrivals = append(s.arrivals, a)
			} else {
				s.finishPart(a.from, true)
			}
			return true
		})
	}
	d.held, d.puts = sort(d.held, false), sort(d.puts, true)
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

// letGoPaused lets go of arrivals of groups that are paused.
func (s *Shard) letGoPaused() {
	for i := range s.arrivals {
		if a := &s.arrivals[i]; len(a.list.domain.withheld) > 0 {
			a.withhold(a.list.domain.withheld)
		}
	}
	s.arrivals = slices.DeleteFunc(s.arrivals, func(a arrival) bool {
		if len(a.Triggers) > 0 {
			return false
		}
		s.finishPart(a.from, true)
		return true
	})
}

// withhold takes the triggers of some groups out.
func (a *arrival) withhold(groups map[string]bool) {
	if groups[a.Group] {
		a.Triggers = nil
	}
	if a.groups != nil {
		a.keep(func(i int) bool { return !groups[a.groups[i]] })
	}
}

// without are triggers without those of some groups.
func (t *Triggers) without(groups map[string]bool) *Triggers {
	if len(groups) == 0 || t.Groups == nil {
		return t
	}
	a := arrival{Chunk: table.Chunk{Triggers: t.Packed}, groups: t.Groups}
	a.withhold(groups)
	rest := *t
	rest.Packed, rest.Groups = a.Triggers, a.groups
	return &rest
}

// putAgain are the parts of a call that was not made that arrive again: not those of groups that are not known, if the call is stale.
func (s *Shard) putAgain(c *call) []arrival {
	if !c.stale {
		return c.puts
	}
	return slices.DeleteFunc(c.puts, func(a arrival) bool {
		out := a.Group == "" && !a.known
		if out {
			s.finishPart(a.from, true)
		}
		return out
	})
}
