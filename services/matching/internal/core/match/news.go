package match

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Reports of the partitions of a tasklist: to their parents what polls are wanted for, to frontends what waits.

// tellUp has the parent of a partition hear news soon.
func (s *Shard) tellUp(l *list) {
	if l.Partition > 0 && !l.news {
		l.news = true
		s.news = append(s.news, l)
	}
}

// tellParents tells of news, where it has not just been done.
func (s *Shard) tellParents() {
	s.news = slices.DeleteFunc(s.news, func(l *list) bool {
		if s.now.Mono < l.newsAt() {
			return false
		}
		l.news = false
		if b := s.branch(l); len(b.Wanted) > 0 || l.wanted || len(b.Present) > 0 && s.now.Mono-l.saidAt >= newsAgain {
			l.wanted, l.saidAt, l.said = len(b.Wanted) > 0, s.now.Mono, b.triggers()
			s.fx.Branches = append(s.fx.Branches, b)
		}
		return true
	})
}

// newsAt is when a partition may tell its parent again.
func (l *list) newsAt() time.Duration {
	if l.saidAt == 0 {
		return 0
	}
	if l.said >= newsMany {
		return l.saidAt + newsManyEvery
	}
	return l.saidAt + newsEvery
}

// triggers is for how many of them polls are wanted.
func (b *Branch) triggers() int {
	n := 0
	for i := range b.Wanted {
		n += b.Wanted[i].Triggers
	}
	return n
}

// branch is what a partition has to tell.
func (s *Shard) branch(l *list) Branch {
	l.outdated(s.now.Mono)
	b := Branch{Tasklist: l.Tasklist, Present: l.presentBelow()}
	at := map[table.Column]int{}
	want := func(w Wanted) {
		w.Group = "" // all groups of a type together
		i, known := at[w.Column]
		if !known {
			at[w.Column] = len(b.Wanted)
			b.Wanted = append(b.Wanted, w)
			return
		}
		o := &b.Wanted[i]
		o.ReadyAt, o.Limited, o.Triggers = min(o.ReadyAt, w.ReadyAt), o.Limited || w.Limited, o.Triggers+w.Triggers
	}
	if !l.domain.down {
		for _, c := range l.index.Candidates(wantedLooksMax, func(at table.Column) bool { return l.queue.Takes(at.Type) || l.Lacks(at) }) {
			want(Wanted{Column: c.Column, ReadyAt: c.Head, Limited: l.TypePath(c.Type) != limit.Unlimited, Triggers: max(1, l.index.TriggersIn(c.Column))})
		}
	}
	for _, w := range l.wantedBelow() {
		if !l.queue.Takes(w.Type) {
			want(*w.Wanted)
		}
	}
	slices.SortStableFunc(b.Wanted, Wanted.compare)
	b.Wanted = l.inTurn(b.Wanted)
	return b
}

// inTurn is as much of what polls are wanted for as one message names: the most urgent half of it, and others in turn. Types that no one
// polls for do not keep it from naming those that someone does.
func (l *list) inTurn(all []Wanted) []Wanted {
	if len(all) <= wantedMax {
		return all
	}
	const half = wantedMax / 2
	rest := all[half:]
	first := l.namedAt % len(rest)
	l.namedAt = first + half
	named := slices.Clone(all[:half])
	for i := range half {
		named = append(named, rest[(first+i)%len(rest)])
	}
	slices.SortStableFunc(named, Wanted.compare)
	return named
}

// presentBelow is present, with what partitions below hold.
func (l *list) presentBelow() []string {
	all := l.present()
	for i := range l.below {
		all = append(all, l.below[i].Present...)
	}
	return firstTypes(all)
}

// sweepTree repeats what a partition holds, and forgets what others have said.
func (s *Shard) sweepTree(l *list) {
	l.outdated(s.now.Mono)
	s.tellLoad(l)
	if (!l.index.Empty() || len(l.below) > 0) && s.now.Mono-l.saidAt >= newsAgain {
		s.tellUp(l)
	}
}

// lookSpread notes whether a tasklist has several partitions, or may get them: those are looked after also while no polls wait, as those with triggers,
// which polls of frontends are wanted for. Partitions whose number the engine sets are remembered as long as there are so many: one that no one tells of
// would be unknown, not idle.
func (s *Shard) lookSpread(l *list) {
	n, scales := s.catalog.Partitions(l.Domain, l.Name), s.catalog.Scales(l.Domain, l.Name)
	l.spread = l.Partition > 0 || n > 1 || scales
	l.kept = scales && l.Partition < n
	watched := l.spread || l.said > 0 || !l.index.Empty()
	switch {
	case watched && !l.watched:
		s.watched++
	case l.watched && !watched:
		s.watched--
	}
	l.watched = watched
}

// tellLoad tells frontends what waits in a partition, if something does, or its tasklist has several partitions, or may get them; and at once that nothing
// waits any more.
func (s *Shard) tellLoad(l *list) {
	since, load := s.now.Mono-l.loadAt, Load{Tasklist: l.Tasklist, Triggers: l.index.Triggers() + l.ReadAhead()}
	if s.lookSpread(l); !l.watched || since < loadEvery && !l.remains && (load.Triggers > 0 || l.said == 0) {
		return
	}
	if l.loadAt > 0 {
		load.PerSecond = float64(l.came) / since.Seconds()
	}
	load.Types = l.index.Types(loadTypesMax)
	l.tell(load, s)
}

func (l *list) tell(load Load, s *Shard) {
	l.loadAt, l.came, l.remains = s.now.Mono, 0, false
	if !l.spread {
		l.said = load.Triggers
	}
	s.fx.Loads = append(s.fx.Loads, load)
}

// call has frontends send the polls that wait there, once a turn: triggers have come that none is here for.
func (l *list) call(t *Triggers, s *Shard) {
	if !l.spread && !l.queue.Takes(t.Type) && (l.said == 0 || l.loadAt < s.now.Mono) {
		n := l.index.Triggers() + l.ReadAhead() + len(t.Packed)/ids.TriggerBytes
		l.tell(Load{Tasklist: l.Tasklist, Triggers: n, Types: append(l.index.Types(loadTypesMax-1), t.Type)}, s)
	}
}

// callAgain has frontends hear what a poll has left that was answered, if no other one is here for it: they have sent no more polls than what waited
// needs, and this one may have taken less than it could. The first time is at once, others with the next sweep.
func (l *list) callAgain(s *Shard) {
	if l.spread || l.remains || l.index.Empty() || !slices.ContainsFunc(l.index.Types(loadTypesMax), func(typ string) bool { return !l.queue.Takes(typ) }) {
		return
	}
	if l.remains = true; s.now.Mono-l.loadAt >= sweepEvery {
		s.tellLoad(l)
	}
}
