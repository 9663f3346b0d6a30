package match

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Tasks that a limit counts per group stand in columns of one group each. A column from before there was such a limit holds
// tasks of groups that are not known: it is forgotten, and history sends all triggers again.

// regroup has what is under way in a domain go into columns of one group each, where a limit that is new counts it per group.
func (s *Shard) regroup(d *domain) {
	unknown := func(a *arrived) bool { return a.List.UnknownGroups(a.Column) }
	d.held = s.arrivals.Recall(d.held, unknown)
	d.puts = s.arrivals.Recall(d.puts, d.unput(unknown))
	ends := s.grabs.Withdraw(func(r *request) bool { return r.From.List.domain == d && r.From.List.UnknownGroups(r.From.Column) })
	for i := range ends {
		ends[i].Again = true
	}
	s.endAll(ends)
	for _, l := range d.lists {
		s.clearUnknown(l)
	}
}

// clearUnknown has the tables forget the columns of a tasklist whose groups are not known, and history send their triggers again.
func (s *Shard) clearUnknown(l *list) {
	all := l.index.Candidates(l.index.Columns(), func(at table.Column) bool { return !l.UnknownGroups(at) })
	if len(all) == 0 {
		return
	}
	for _, at := range all {
		l.index.Remove(at.Column)
		l.ranks.Forget(at.Column)
		l.domain.clears = append(l.domain.clears, table.Place{Tasklist: l.Tasklist, Column: at.Column})
	}
	s.sendAgain(l.Domain)
}

// index notes that triggers are to be stored.
func (s *Shard) index(a *arrived) {
	if a.Group == "" {
		a.List.index.Put(a.Column, a.ReadyAt, a.Len())
		return
	}
	rank := a.Rank
	if rank == 0 {
		rank = a.Ranks()[0].At
	}
	a.List.index.PutGroup(a.Column, a.ReadyAt, rank, a.List.Weights().Step(a.Column)*int64(a.Starts()), a.Len())
}

// found notes a column that the tables hold.
func (s *Shard) found(l *list, k *table.Known) {
	if k.Group == "" {
		l.index.Put(k.Column, k.ReadyAt, k.Triggers)
	} else {
		l.index.PutGroup(k.Column, k.ReadyAt, k.Rank, l.Weights().Step(k.Column), k.Triggers)
	}
	l.ranks.Found(k, l.Weights().Step(k.Column))
}
