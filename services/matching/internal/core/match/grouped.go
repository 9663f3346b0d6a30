package match

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Tasks that a limit counts per group stand in columns of one group each. A column from before there was such a limit holds
// tasks of groups that are not known: it is forgotten, and history sends all triggers again.

// regroup has what is under way in a domain go into columns of one group each, where a limit that is new counts it per group.
func (s *Shard) regroup(d *domain) {
	back := func(all []arrival, putting bool) []arrival {
		return slices.DeleteFunc(all, func(a arrival) bool {
			if !a.list.UnknownGroups(a.Column) {
				return false
			}
			if putting {
				a.list.putting--
			}
			s.arrivals = append(s.arrivals, a)
			return true
		})
	}
	d.held, d.puts = back(d.held, false), back(d.puts, true)
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

// sendAgain has history send all triggers of a domain again.
func (s *Shard) sendAgain(name string) {
	s.retriggerAll(name)
	if d := s.domains[name]; d != nil {
		s.work(d)
	}
}

// clear has a call forget columns.
func (s *Shard) clear(d *domain, c *call) {
	n := min(len(d.clears), callCandidatesMax)
	c.out.Clear = slices.Clone(d.clears[:n])
	d.clears = slices.Delete(d.clears, 0, n)
}

// splitArrivals sorts by groups what is to stand in columns of one group each, and lets go of what is of groups that are not known.
func (s *Shard) splitArrivals() {
	if !slices.ContainsFunc(s.arrivals, func(a arrival) bool { return a.list.UnknownGroups(a.Column) }) {
		return
	}
	all := s.arrivals
	s.arrivals = make([]arrival, 0, len(all))
	for i := range all {
		switch a := &all[i]; {
		case !a.list.UnknownGroups(a.Column):
			s.arrivals = append(s.arrivals, *a)
		case a.known:
			s.byGroup(a)
			s.finishPart(a.from, true)
		default:
			s.finishPart(a.from, true)
			s.sendAgain(a.Domain)
		}
	}
}

// byGroup has triggers arrive by their groups, in columns of one group each.
func (s *Shard) byGroup(a *arrival) {
	weights := fairness.Weights(s.catalog.Weights(a.Domain))
	at := map[string]int{}
	for i := range a.Len() {
		name := ""
		if a.groups != nil {
			name = a.groups[i]
		}
		group := cmp.Or(name, table.NoGroup)
		k, ok := at[group]
		if !ok || s.arrivals[k].Len() >= table.ChunkTriggersMax {
			one := arrival{list: a.list, from: a.from, known: true, Chunk: table.Chunk{Tasklist: a.Tasklist, Column: a.Column, ReadyAt: a.ReadyAt, Cost: a.Cost}}
			one.Group = group
			if weights.Idle(name) {
				one.Priority, one.ReadyAt = table.PriorityIdle, fairness.IdleFrom+a.ReadyAt
			}
			k, at[group] = len(s.arrivals), len(s.arrivals)
			s.arrivals = append(s.arrivals, one)
			if a.from != nil {
				a.from.left++
			}
		}
		one := &s.arrivals[k]
		one.Triggers = append(one.Triggers, a.Trigger(i)...)
		if one.ReadyAt >= fairness.IdleFrom {
			one.ranks = append(one.ranks, fairness.Rank{At: one.ReadyAt, Age: one.ReadyAt})
		}
	}
}

// index notes that triggers are to be stored.
func (s *Shard) index(a *arrival) {
	if a.Group == "" {
		a.list.index.Put(a.Column, a.ReadyAt, a.Len())
		return
	}
	rank := a.Rank
	if rank == 0 {
		rank = a.ranks[0].At
	}
	a.list.index.PutGroup(a.Column, a.ReadyAt, rank, s.stepOf(a.Domain, a.Column)*int64(a.Starts()), a.Len())
}

// stepOf is by how much the ranks in a column differ.
func (s *Shard) stepOf(domain string, at table.Column) int64 {
	return fairness.Weights(s.catalog.Weights(domain)).Step(at)
}

// found notes a column that the tables hold.
func (s *Shard) found(l *list, k *table.Known) {
	if k.Group == "" {
		l.index.Put(k.Column, k.ReadyAt, k.Triggers)
	} else {
		l.index.PutGroup(k.Column, k.ReadyAt, k.Rank, s.stepOf(k.Domain, k.Column), k.Triggers)
	}
	l.ranks.Found(k, s.stepOf(k.Domain, k.Column))
}
