package match

import (
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Look has a tasklist's polls looked at.
func (l *list) Look() { l.domain.Mark(&l.source) }

// Polled reports whether polls of a tasklist wait.
func (l *list) Polled() bool { return l.queue.Len() > 0 }

// Pair gives triggers that were read ahead to polls. Those that the table holds and that are more urgent come first.
func (l *list) Pair(c table.Chunk, p *limit.Path) (left []byte, given int) {
	if l.source.Precedes(c.Priority) {
		return c.Triggers, 0
	}
	return l.shard.dealing.Pair(l, c, p, nil)
}

// PutBack has a chunk stored that was read ahead, before the next call takes anything.
func (l *list) PutBack(c table.Chunk) { l.domain.PutBack(&l.source, c) }

// Back brings a column back that was set aside.
func (l *list) Back(at table.Column) {
	l.source.Back(at)
	if l.queue.Len() > 0 {
		l.Look()
	}
	l.Changed()
}

// limited finds a domain, or makes it if it has limits; else it is nil.
func (s *Shard) limited(name string) (d *domain, isNew bool) {
	if d = s.domains[name]; d == nil && len(s.catalog.Limits(name)) > 0 {
		return s.domain(name), true
	}
	return d, false
}

// limitsChanged takes over what operators have set.
func (s *Shard) limitsChanged(name string) {
	d, isNew := s.limited(name)
	switch {
	case d == nil:
		return
	case isNew:
		for _, l := range d.Met {
			s.limits.ReportSoon(l)
		}
		return
	}
	all := s.catalog.Limits(name)
	for _, ref := range d.Change(all) {
		s.fx.Drops = append(s.fx.Drops, LimitHint{name, []table.Ref{ref}})
	}
	for _, l := range s.meetLimits(d, all) {
		s.limits.ReportSoon(l)
	}
	s.pauseGroups(d)
}

// pauseGroups takes over which groups of a domain are paused. Such a group has no triggers here: those that come are released, so however many wait
// cost nothing. History has them, and sends them again when the group goes on. Those that are here from before may be of a group that is paused now: the
// domain starts over.
func (s *Shard) pauseGroups(d *domain) {
	before := d.withheld
	d.withheld = s.catalog.PausedGroups(d.Name)
	missing := func(of map[string]bool) func(group string) bool { return func(group string) bool { return !of[group] } }
	switch {
	case slices.ContainsFunc(slices.Collect(maps.Keys(d.withheld)), missing(before)):
		s.dealing.StartOver(d.Tables)
	case slices.ContainsFunc(slices.Collect(maps.Keys(before)), missing(d.withheld)):
		d.Retrigger()
	}
}

// meetLimits counts the attempts that the limits of a domain cover which are new here.
func (s *Shard) meetLimits(d *domain, all []limit.Setting) []*limit.Limit {
	met, groups := d.Meet(all)
	for _, l := range d.Sources {
		l.Repath()
	}
	if groups && len(d.Sources) > 0 { // a trigger from before may be of a group that is not known
		s.dealing.StartOver(d.Tables)
	}
	if len(met) == 0 {
		return nil
	}
	s.grabs.Undecided(func(r *request) { // what is under way may come to run
		if r.From.List.domain == d {
			r.From.List.AdoptGrab(r.From.Column, limit.MemberOf(r.Trigger), r.From.Path)
		}
	})
	s.audit(d, met, true)
	return met
}

// askForEntries has all shards set their entries of some limits.
func (s *Shard) askForEntries(d *domain, refs []table.Ref) {
	if len(refs) > 0 {
		d.Restoring(refs, s.now.Mono)
		s.fx.Restore = append(s.fx.Restore, LimitHint{Domain: d.Name, Limits: refs})
	}
}

// audit asks which attempts run that limits cover. If adopt is set, those that are not known here are counted.
func (s *Shard) audit(d *domain, all []*limit.Limit, adopt bool) {
	c, types, restore := s.limits.BeginCount(all, adopt)
	if c.Empty() {
		return
	}
	s.askForEntries(d, restore)
	s.questions.Count(d.Name, types, c, func(partition int) uint64 {
		if adopt && c.CountsGroups() {
			return s.grabs.LastBatch(partition)
		}
		return 0
	})
}
