package match

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// A group that is paused has no triggers here: those that come are let go, so however many wait cost nothing. History
// has them, and sends them again when the group goes on. A limit that counts per group has triggers in columns of one
// group each only. If a group is paused, or there is such a limit for the first time, the triggers that are here may be of
// any group: all of the domain starts over.

// withhold takes over which groups of a domain are paused.
func (s *Shard) withhold(d *domain) {
	before := d.withheld
	d.withheld = s.catalog.PausedGroups(d.name)
	goesOn, isNew := false, false
	for group := range before {
		goesOn = goesOn || !d.withheld[group]
	}
	for group := range d.withheld {
		isNew = isNew || !before[group]
	}
	switch {
	case isNew:
		s.startOver(d)
	case goesOn:
		s.sendAgain(d)
	}
}

// startOver lets go of all triggers of a domain, wherever they are, and has history send them again. The triggers that
// a call takes which is under way are let go of when they come. Only grabs that were sent to history go on.
func (s *Shard) startOver(d *domain) {
	d.life++
	for _, l := range d.met {
		s.dropAhead(l)
		for one := range l.groups() {
			one.parked = nil
		}
	}
	s.finishAll(d.unqueue(), true)
	s.arrivals = slices.DeleteFunc(s.arrivals, func(a arrival) bool {
		out := a.list.domain == d
		if out {
			s.finishPart(a.from, true)
		}
		return out
	})
	for _, lane := range s.lanes {
		lane.gather = slices.DeleteFunc(lane.gather, func(g grab) bool {
			out := g.from.list.domain == d
			if out {
				s.ungrab(&g)
			}
			return out
		})
		lane.aside = slices.DeleteFunc(lane.aside, func(c table.Chunk) bool {
			out := c.Domain == d.name
			if out {
				lane.asideN -= c.Len()
			}
			return out
		})
	}
	for _, l := range d.lists {
		for _, at := range l.index.All() {
			d.clears = append(d.clears, table.Place{Tasklist: l.Tasklist, Column: at})
		}
		l.index = table.Index{}
		clear(l.ranks)
	}
	s.restart(d)
	s.sendAgain(d)
}

// dropAhead forgets what was read ahead.
func (s *Shard) dropAhead(l *limit) {
	for i := range l.ahead {
		s.countAhead(&l.ahead[i], -l.ahead[i].Len())
	}
	l.ahead = nil
}

// finishAll notes that parts of messages are done with.
func (s *Shard) finishAll(all []arrival, ok bool) {
	for i := range all {
		s.finishPart(all[i].from, ok)
	}
}

// dropTaken lets go of what a call took that began before its domain started over.
func (s *Shard) dropTaken(d *domain, c *call, all []table.Taken) {
	for i := range all {
		for _, b := range all[i].Batches {
			chunk := b.Chunk(table.Tasklist{})
			s.unstart(c.pathOf(i, &b).rates, chunk.Len()*chunk.Starts(), s.now.Mono)
		}
	}
	s.sendAgain(d)
}

// sendAgain has history send all triggers of a domain again.
func (s *Shard) sendAgain(d *domain) {
	for p := range s.lanes {
		s.asks.retrigger(p, d.name)
	}
	s.work(d)
}

// without are triggers without those of some groups.
func (t *Triggers) without(groups map[string]bool) *Triggers {
	if len(groups) == 0 || t.Groups == nil {
		return t
	}
	a := arrival{Chunk: table.Chunk{Triggers: t.Packed}, groups: t.Groups}
	a.keep(func(i int) bool { return !groups[a.groups[i]] })
	rest := *t
	rest.Packed, rest.Groups = a.Triggers, a.groups
	return &rest
}
