package match

import (
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
	return l.shard.give(l, c, p, nil)
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

// limitsChanged takes over what operators have set.
func (s *Shard) limitsChanged(name string) {
	all := s.catalog.Limits(name)
	d := s.domains[name]
	if d == nil {
		if len(all) == 0 {
			return
		}
		for _, l := range s.domain(name).Met {
			s.limits.ReportSoon(l)
		}
		return
	}
	for _, ref := range d.Domain.Change(all) {
		s.fx.Drops = append(s.fx.Drops, LimitHint{name, []table.Ref{ref}})
	}
	for _, l := range s.meetLimits(d, all) {
		s.limits.ReportSoon(l)
	}
	s.pauseGroups(d)
}

// regroup has what is under way in a domain go into columns of one group each, where a limit that is new counts it per group. A column from
// before contains tasks of groups that are not known: it is forgotten, and history sends all triggers again.
func (s *Shard) regroup(d *domain) {
	d.RecallUnknown()
	ends := s.grabs.Withdraw(func(r *request) bool { return r.From.List.domain == d && r.From.List.UnknownGroups(r.From.Column) })
	for i := range ends {
		ends[i].Again = true
	}
	s.endAll(ends)
	d.ClearUnknown()
}

// meetLimits counts the attempts that the limits of a domain cover which are new here.
func (s *Shard) meetLimits(d *domain, all []limit.Setting) []*limit.Limit {
	met, groups := d.Domain.Meet(all)
	for _, l := range d.Sources {
		l.Repath()
	}
	if groups {
		s.regroup(d)
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

// restore sets the entries of limits that lack some.
func (s *Shard) restore(h *LimitHint) {
	d := s.domains[h.Domain]
	if d == nil {
		if len(s.catalog.Limits(h.Domain)) == 0 {
			return
		}
		d = s.domain(h.Domain)
	}
	for _, ref := range h.Limits {
		d.Domain.Restore(ref)
	}
}

// releaseAll counts the slots of attempts that are over.
func (s *Shard) releaseAll(r *Release) {
	d := s.domains[r.Domain]
	if d == nil {
		// The previous owner may have reported them to the tables.
		if len(s.catalog.Limits(r.Domain)) == 0 {
			return
		}
		d = s.domain(r.Domain)
		d.Domain.DueAll(r.Path)
	}
	d.Domain.End(r.Type, r.Path, r.Bookings)
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

// auditAll looks for slots whose release may have been lost.
func (s *Shard) auditAll() {
	for _, d := range s.inOrder {
		d.AuditNow(s.now.Mono)
	}
	s.sweepAt = s.now.Mono
}
