package match

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/lasthour"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// A limit that counts per group has one limit for each group of which attempts run or wait: those are made by use, and forgotten when
// nothing is left of them. Its coverage, the count of what runs and what the tables know of each shard is the business of the one; slots
// are that of the others. A column of a group that has no slot left is set aside, and costs nothing until one may be free.

// perGroup is what a limit that counts per group knows of its groups.
type perGroup struct {
	limits map[string]*limit
	// count numbers the counts of the attempts that run: what the tables know from before the last one is void when they
	// know all of it. unsaid counts the limits of which they do not.
	count  uint64
	unsaid int
}

// parked is a column that was set aside.
type parked struct {
	list  *list
	at    table.Column
	since time.Duration
}

// ring is limits of which some are looked at at a time, one after another.
type ring struct {
	all []*limit
	at  int
}

// The rings of a domain.
const (
	// ringAll has the limits of all groups, ringLine those for which it waits with other shards, ringFull those of which it had no slot. ringOver
	// has those, and others, whose policy may come to act.
	ringAll = iota
	ringLine
	ringFull
	ringOver
	rings
)

func (r *ring) add(l *limit, which int) {
	if l.rings[which] == 0 {
		r.all = append(r.all, l)
		l.rings[which] = len(r.all)
	}
}

func (r *ring) remove(l *limit, which int) {
	i := l.rings[which] - 1
	if i < 0 {
		return
	}
	last := len(r.all) - 1
	r.all[i] = r.all[last]
	r.all[i].rings[which] = i + 1
	r.all[last] = nil
	r.all = r.all[:last]
	l.rings[which] = 0
}

// next are the next n to be looked at.
func (r *ring) next(n int) []*limit {
	some := make([]*limit, 0, min(n, len(r.all)))
	for range min(n, len(r.all)) {
		if r.at >= len(r.all) {
			r.at = 0
		}
		some = append(some, r.all[r.at])
		r.at++
	}
	return some
}

// groups are the limits of single groups, in the order of their groups.
func (l *limit) groups() iter.Seq[*limit] {
	return func(yield func(*limit) bool) {
		if l.perGroup == nil {
			return
		}
		for _, group := range slices.Sorted(maps.Keys(l.perGroup.limits)) {
			if one := l.perGroup.limits[group]; one != nil && !yield(one) {
				return
			}
		}
	}
}

// sum adds something up over a limit and those of its groups.
func (l *limit) sum(f func(*limit) int) int {
	n := f(l)
	if l.perGroup != nil {
		for _, one := range l.perGroup.limits {
			n += f(one)
		}
	}
	return n
}

// holding counts the attempts that use slots, notBooked those for which nothing was booked.
func (l *limit) holding() int { return l.sum(func(one *limit) int { return len(one.held) }) }

func (l *limit) notBooked() int { return l.sum(func(one *limit) int { return one.unbooked }) }

// anyBlocked tells whether a group has no slot left.
func (l *limit) anyBlocked() bool {
	return l.perGroup != nil && l.sum(func(one *limit) int { return len(one.parked) }) > 0
}

// limit is that of a reference, or nil.
func (d *domain) limit(ref table.Ref) *limit {
	if l := d.limits[ref]; l != nil {
		return l
	}
	of, group, ok := ref.Group()
	if l := d.limits[of]; ok && l != nil && l.perGroup != nil {
		return l.perGroup.limits[group]
	}
	return nil
}

// groupLimit finds or makes the limit of one group.
func (s *Shard) groupLimit(of *limit, group string) *limit {
	l := of.perGroup.limits[group]
	if l == nil {
		l = &limit{
			Limit: Limit{Ref: of.Ref.Of(group), Max: s.groupMax(of, group)}, domain: of.domain, of: of, group: group, usage: usage{Fullness: lasthour.Fullness{MetAt: s.now.Mono}},
		}
		of.perGroup.limits[group] = l
		of.domain.rings[ringAll].add(l, ringAll)
	}
	return l
}

// groupMax is how many attempts of a group may run at once.
func (s *Shard) groupMax(of *limit, group string) int {
	if most, ok := s.catalog.GroupLimits(of.domain.name)[group]; ok {
		return most
	}
	return of.Max
}

// resizeGroups takes over how many attempts of each group may run now.
func (s *Shard) resizeGroups(of *limit) {
	for l := range of.groups() {
		if most := s.groupMax(of, l.group); most != l.Max {
			l.Max = most
			s.unblock(l)
		}
	}
}

// forgetGroup forgets the limit of a group of which nothing is left.
func (s *Shard) forgetGroup(l *limit) {
	if l.of == nil || !l.known() || len(l.held)+l.entry+len(l.parked) > 0 || l.blocked != 0 || l.unsaid || l.due || l.telling || l.slack || l.inCall() {
		return
	}
	s.removeGroup(l)
}

func (s *Shard) removeGroup(l *limit) {
	delete(l.of.perGroup.limits, l.group)
	for which := range l.domain.rings {
		l.domain.rings[which].remove(l, which)
	}
}

// unsay: it is not known what the tables know of a limit.
func (l *limit) unsay() {
	if l.of != nil && !l.unsaid {
		l.of.perGroup.unsaid++
	}
	l.unsaid = true
}

// tellGroups has the tables learn of all slots that are held of a limit that counts per group, which was counted again.
func (s *Shard) tellGroups(of *limit) {
	if of.perGroup == nil {
		return
	}
	s.counted++
	of.perGroup.count = s.counted
	for l := range of.groups() {
		if len(l.held) > 0 || l.entry > 0 || l.unsaid {
			l.unsay()
			s.dueLimit(l)
		}
		s.forgetGroup(l)
	}
}

// complete tells whether the tables know of all slots that are held of a limit that counts per group, after the call that is being made.
func (l *limit) complete() bool {
	said := 0
	for _, one := range l.in.limits {
		if one.of == l && one.unsaid {
			said++
		}
	}
	return l.perGroup.unsaid == said
}

// heldUp are limits of groups that other shards seem to hold up: their entries may be too high.
func (l *limit) heldUp() (refs []table.Ref) {
	for one := range l.groups() {
		if one.blocked == table.Full && one.used > one.entry && len(refs) < groupsLookedAt {
			refs = append(refs, one.Ref)
		}
	}
	return refs
}

// learnPerGroup learns how a limit that counts per group stands after a call. It returns whether other shards are to be asked to say what
// they hold.
func (l *limit) learnPerGroup(st *table.LimitState, blocked table.BlockedWhy, now Now) bool {
	l.shownAt, l.unsaid = now.Mono, false
	l.standsBlocked(blocked)
	return st.Restoring && l.mayRestore(now)
}

// watch sees to it that the limit of a group is shown to the tables again, and that lost releases are found.
func (s *Shard) watch(l *limit) {
	if l.of == nil {
		return
	}
	if full := &l.domain.rings[ringFull]; l.blocked != 0 {
		full.add(l, ringFull)
	} else {
		full.remove(l, ringFull)
	}
	line := &l.domain.rings[ringLine]
	if l.blocked == table.InLine || l.blocked != 0 && l.used > l.entry {
		line.add(l, ringLine)
	} else {
		line.remove(l, ringLine)
	}
	if l.blocked == table.Full && l.of.auditAt == 0 {
		l.of.auditAt = s.now.Mono + auditEvery
	}
}

// sweepGroups has some limits of groups shown to the tables again: those that hold slots, so that these do not expire, and those that wait
// with other shards for one, to keep their places.
func (s *Shard) sweepGroups(d *domain) {
	if d.state != open {
		return
	}
	for _, l := range d.rings[ringLine].next(groupsLookedAt) {
		if s.now.Mono-l.shownAt >= lineEvery {
			s.unblock(l)
		}
	}
	for _, l := range d.rings[ringAll].next(groupsLookedAt) {
		if l.unsaid || len(l.held) > 0 && s.now.Mono-l.shownAt >= refreshAfter {
			s.dueLimit(l)
		}
		s.auditOverdue(l, l.of)
		s.forgetGroup(l)
	}
}

// park sets a column aside that waits for a slot of its group.
func (s *Shard) park(lim *limit, l *list, at table.Column) {
	if l.index.Aside(at) {
		lim.parked = append(lim.parked, parked{l, at, s.now.Mono})
		lim.waitAt(at.Priority)
	}
}

// parkBehind sets a column aside of which triggers were left for which a group has no slot.
func (s *Shard) parkBehind(p *path, l *list, at table.Column) {
	for _, lim := range p.limits {
		if lim.of != nil && lim.blocked != 0 && lim.known() {
			s.park(lim, l, at)
			return
		}
	}
}

// unpark brings back what waits for a slot of a group: first the priority whose turn it is, then the most urgent, and who has waited for the longest.
func (s *Shard) unpark(lim *limit) {
	first, after := lim.waiters.turn.Next(func(priority int) bool {
		return slices.ContainsFunc(lim.parked, func(p parked) bool { return p.at.Priority == priority })
	})
	lim.waiters.turn = after
	place := func(p parked) int {
		if p.at.Priority == first && !s.catalog.Strict(p.list.Domain, p.list.Name) {
			return 0
		}
		return p.at.Priority
	}
	slices.SortStableFunc(lim.parked, func(a, b parked) int { return place(a) - place(b) })
	for _, p := range lim.parked {
		p.list.index.Back(p.at, p.list.ranks.Now(p.at))
		if p.list.queue.Len() > 0 {
			s.mark(p.list)
		}
		s.tellUp(p.list)
	}
	lim.parked = nil
}

// unparkGone forgets that a column waited for slots that is no more: a call took the last of it, or a pause of its group let go of it. Else
// it would count as set aside when it comes again, and is not.
func (l *list) unparkGone(at table.Column) {
	for lim := range l.covering(at) {
		if len(lim.parked) > 0 {
			lim.parked = slices.DeleteFunc(lim.parked, func(p parked) bool { return p.list == l && p.at == at })
		}
	}
}

// unparkAll does so for all groups of a limit that is no more.
func (s *Shard) unparkAll(of *limit) {
	for l := range of.groups() {
		l.blocked = 0
		s.unpark(l)
		s.removeGroup(l)
	}
}
