package limit

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

// PerGroup is what a limit that counts per group knows of its groups.
type PerGroup struct {
	Limits map[string]*Limit
	// count numbers the counts of the attempts that run: what the tables know from before the last one is void when they
	// know all of it. unsaid counts the limits of which they do not.
	count  uint64
	unsaid int
}

// Parked is a column that was set aside.
type Parked struct {
	List  *List
	At    table.Column
	since time.Duration
}

// ring is limits of which some are looked at at a time, one after another.
type ring struct {
	all []*Limit
	at  int
}

// The rings of a domain.
const (
	// ringAll has the limits of all groups, RingLine those for which it waits with other shards, ringOver those, and others, whose policy may come to
	// act.
	ringAll = iota
	RingLine
	ringOver
	rings
)

// InRing has a limit be in a ring of its domain, or not.
func (l *Limit) InRing(which int, in bool) {
	r, i := &l.Domain.Rings[which], l.rings[which]-1
	switch last := len(r.all) - 1; {
	case in && i < 0:
		r.all = append(r.all, l)
		l.rings[which] = len(r.all)
	case !in && i >= 0:
		r.all[i] = r.all[last]
		r.all[i].rings[which] = i + 1
		r.all[last] = nil
		r.all = r.all[:last]
		l.rings[which] = 0
	}
}

// next are the next n to be looked at.
func (r *ring) next(n int) []*Limit {
	some := make([]*Limit, 0, min(n, len(r.all)))
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
func (l *Limit) groups() iter.Seq[*Limit] {
	return func(yield func(*Limit) bool) {
		if l.ByGroup == nil {
			return
		}
		for _, group := range slices.Sorted(maps.Keys(l.ByGroup.Limits)) {
			if one := l.ByGroup.Limits[group]; one != nil && !yield(one) {
				return
			}
		}
	}
}

// each are the limits of a domain, and of their groups.
func (d *Domain) each() iter.Seq[*Limit] {
	return func(yield func(*Limit) bool) {
		for _, l := range d.Met {
			if !yield(l) {
				return
			}
			for one := range l.groups() {
				if !yield(one) {
					return
				}
			}
		}
	}
}

// sum adds something up over a limit and those of its groups.
func (l *Limit) sum(f func(*Limit) int) int {
	n := f(l)
	if l.ByGroup != nil {
		for _, one := range l.ByGroup.Limits {
			n += f(one)
		}
	}
	return n
}

// holding counts the attempts that use slots, notBooked those for which nothing was booked.
func (l *Limit) holding() int { return l.sum(func(one *Limit) int { return len(one.Slots) }) }

func (l *Limit) notBooked() int { return l.sum(func(one *Limit) int { return one.unbooked }) }

// anyBlocked tells whether a group has no slot left.
func (l *Limit) anyBlocked() bool {
	return l.ByGroup != nil && l.sum(func(one *Limit) int { return len(one.Parked) }) > 0
}

// Limit is that of a reference, or nil.
func (d *Domain) Limit(ref table.Ref) *Limit {
	if l := d.Limits[ref]; l != nil {
		return l
	}
	of, group, ok := ref.Group()
	if l := d.Limits[of]; ok && l != nil && l.ByGroup != nil {
		return l.ByGroup.Limits[group]
	}
	return nil
}

// groupLimit finds or makes the limit of one group.
func (s *Limits) groupLimit(of *Limit, group string) *Limit {
	l := of.ByGroup.Limits[group]
	if l == nil {
		l = &Limit{
			Setting: Setting{Ref: of.Ref.Of(group), Max: s.groupMax(of, group)}, Domain: of.Domain, Of: of, Group: group, Usage: usage{Fullness: lasthour.Fullness{MetAt: s.now}},
		}
		of.ByGroup.Limits[group] = l
		l.InRing(ringAll, true)
	}
	return l
}

// groupMax is how many attempts of a group may run at once.
func (s *Limits) groupMax(of *Limit, group string) int {
	if most, ok := s.catalog.GroupLimits(of.Domain.Name)[group]; ok {
		return most
	}
	return of.Max
}

// forgetGroup forgets the limit of a group of which nothing is left.
func (l *Limit) forgetGroup() {
	if l.Of == nil || !l.known() || len(l.Slots)+l.Entry+len(l.Parked) > 0 || l.Blocked != 0 || l.unsaid || l.Due || l.timed || l.slack || l.inCall() {
		return
	}
	l.removeGroup()
}

func (l *Limit) removeGroup() {
	delete(l.Of.ByGroup.Limits, l.Group)
	for which := range rings {
		l.InRing(which, false)
	}
}

// unsay: it is not known what the tables know of a limit.
func (l *Limit) unsay() {
	if l.Of != nil && !l.unsaid {
		l.Of.ByGroup.unsaid++
	}
	l.unsaid = true
}

// reportGroups has the tables learn of all slots that are held of a limit that counts per group, which was counted again.
func (s *Limits) reportGroups(of *Limit) {
	if of.ByGroup == nil {
		return
	}
	s.counted++
	of.ByGroup.count = s.counted
	for l := range of.groups() {
		if len(l.Slots) > 0 || l.Entry > 0 || l.unsaid {
			l.unsay()
			s.ReportSoon(l)
		}
		l.forgetGroup()
	}
}

// complete tells whether the tables know of all slots that are held of a limit that counts per group, after the call that is being made.
func (l *Limit) complete() bool {
	said := 0
	for _, one := range l.In.Limits {
		if one.Of == l && one.unsaid {
			said++
		}
	}
	return l.ByGroup.unsaid == said
}

// blockedByOthers are limits of groups that other shards seem to hold up: their entries may be too high.
func (l *Limit) blockedByOthers() (refs []table.Ref) {
	for one := range l.groups() {
		if one.Blocked == table.Full && one.used > one.Entry && len(refs) < groupsSweptMax {
			refs = append(refs, one.Ref)
		}
	}
	return refs
}

// watch sees to it that the limit of a group is shown to the tables again, and that lost releases are found.
func (l *Limit) watch(now time.Duration) {
	if l.Of == nil {
		return
	}
	l.InRing(RingLine, l.Blocked == table.InLine || l.Blocked != 0 && l.used > l.Entry)
	if l.Blocked == table.Full && l.Of.auditAt == 0 {
		l.Of.auditAt = now + AuditEvery
	}
}

// SweepGroups has some limits of groups shown to the tables again: those that hold slots, so that these do not expire, and those that wait
// with other shards for one, to keep their places.
func (d *Domain) SweepGroups() {
	s := d.shard
	if !d.Open {
		return
	}
	for _, l := range d.Rings[RingLine].next(groupsSweptMax) {
		if s.now-l.ShownAt >= LineEvery {
			s.unblock(l)
		}
	}
	for _, l := range d.Rings[ringAll].next(groupsSweptMax) {
		if l.unsaid || len(l.Slots) > 0 && s.now-l.ShownAt >= RefreshAfter {
			s.ReportSoon(l)
		}
		s.auditOverdue(l, l.Of)
		l.forgetGroup()
	}
}

// park sets a column aside that waits for a slot of its group.
func (s *Limits) park(lim *Limit, l *List, at table.Column) {
	if l.Index.Aside(at) {
		lim.Parked = append(lim.Parked, Parked{l, at, s.now})
		lim.waitAt(at.Priority)
	}
}

// ParkBehind sets a column aside of which triggers were left for which a group has no slot.
func (s *Limits) ParkBehind(p *Path, l *List, at table.Column) {
	for _, lim := range p.limits {
		if lim.Of != nil && lim.Blocked != 0 && lim.known() {
			s.park(lim, l, at)
			return
		}
	}
}

// unpark brings back what waits for a slot of a group: first the priority whose turn it is, then the most urgent, and who has waited for the longest.
func (s *Limits) unpark(lim *Limit) {
	first, after := lim.waiters.turn.Next(func(priority int) bool {
		return slices.ContainsFunc(lim.Parked, func(p Parked) bool { return p.At.Priority == priority })
	})
	lim.waiters.turn = after
	place := func(p Parked) int {
		if p.At.Priority == first && !s.catalog.Strict(p.List.Domain, p.List.Name) {
			return 0
		}
		return p.At.Priority
	}
	slices.SortStableFunc(lim.Parked, func(a, b Parked) int { return place(a) - place(b) })
	for _, p := range lim.Parked {
		p.List.Tasks.Back(p.At)
	}
	lim.Parked = nil
}

// ForgetParked forgets that a column waited for slots that is no more: a call took the last of it, or a pause of its group let go of it. Else
// it would count as set aside when it comes again, and is not.
func (l *List) ForgetParked(at table.Column) {
	for lim := range l.Covering(at) {
		if len(lim.Parked) > 0 {
			lim.Parked = slices.DeleteFunc(lim.Parked, func(p Parked) bool { return p.List == l && p.At == at })
		}
	}
}

// unparkAll does so for all groups of a limit that is no more.
func (s *Limits) unparkAll(of *Limit) {
	for l := range of.groups() {
		l.Blocked = 0
		s.unpark(l)
		l.removeGroup()
	}
}
