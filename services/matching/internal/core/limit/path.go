package limit

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Path is the limits that triggers of a type need slots of in a tasklist: all of them, or none is booked. They are in the
// sortLimits of their references.
type Path struct {
	limits []*Limit
	Refs   []table.Ref
	// Rates are those that each of them waits for.
	Rates []*Limit
	// perGroup are those that count per group. Of what has a group and is to be booked, counted are the same, and limits has those
	// of its group.
	perGroup, counted []*Limit
	// Pause holds all of them up, if there is one.
	Pause *Limit
}

// Unlimited is the path of what no limit covers and no pause holds up.
var Unlimited = &Path{}

// WaitsFor tells whether what is of it waits for a limit or a rate.
func (p *Path) WaitsFor(l *Limit) bool {
	return slices.Contains(p.limits, l) || slices.Contains(p.Rates, l)
}

// Within tells whether slots of all of p are among those of booked.
func (p *Path) Within(booked *Path) bool {
	return p == booked || !slices.ContainsFunc(p.limits, func(l *Limit) bool { return !slices.Contains(booked.limits, l) })
}

// Taken is what holds its triggers up just now: a pause, or the first limit of which no slot can be had; or nil.
func (p *Path) Taken() *Limit {
	if p.Pause != nil {
		return p.Pause
	}
	return p.meet(table.Column{}, (*Limit).Closed)
}

// meet is the first limit or rate of which f is true for what is of a column, or nil. Of one that counts per group it is that of all groups.
func (p *Path) meet(at table.Column, f func(*Limit) bool) *Limit {
	if l := cmp.Or(p.Find(f), firstOf(p.Rates, f)); l != nil || !grouped(at) {
		return l
	}
	return firstOf(p.perGroup, f)
}

// asked are the limits and rates that the tables are asked for.
func (p *Path) asked() []*Limit { return slices.Concat(p.counted, p.limits, p.Rates) }

// Find is the first limit of which f is true, or nil.
func (p *Path) Find(f func(*Limit) bool) *Limit { return firstOf(p.limits, f) }

// firstOf is the first of some limits of which f is true, or nil.
func firstOf(all []*Limit, f func(*Limit) bool) *Limit {
	if i := slices.IndexFunc(all, f); i >= 0 {
		return all[i]
	}
	return nil
}

// Holds tells whether an attempt uses a slot of it.
func (p *Path) Holds(m Member) bool {
	return p.Find(func(l *Limit) bool { return l.Holds(m) }) != nil
}

// paths finds limits by what they cover, of which a domain may have tens of thousands. It is made again whenever the limits
// of a domain change.
type paths struct {
	// wide cover all.
	wide           []*Limit
	byList, byType map[string][]*Limit
}

func newPaths(all []*Limit) paths {
	p := paths{byList: map[string][]*Limit{}, byType: map[string][]*Limit{}}
	for _, l := range all {
		switch {
		case l.Wide:
			p.wide = append(p.wide, l)
		case l.Tasklist != "":
			p.byList[l.Tasklist] = append(p.byList[l.Tasklist], l)
		}
		for _, typ := range l.Types {
			p.byType[typ] = append(p.byType[typ], l)
		}
	}
	return p
}

// covering are the limits of attempts of a type in a tasklist.
func (p *paths) covering(tasklist, typ string) iter.Seq[*Limit] {
	return func(yield func(*Limit) bool) {
		for _, some := range [...][]*Limit{p.wide, p.byList[tasklist], p.byType[typ]} {
			for _, l := range some {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// TypePath is that of triggers of a type.
func (l *List) TypePath(typ string) *Path {
	own := l.domain.paths.byType[typ]
	if len(own) == 0 {
		return l.wide
	}
	p := l.paths[typ]
	if p == nil {
		p = newPath(l.own, own)
		l.paths[typ] = p
	}
	return p
}

func newPath(parts ...[]*Limit) *Path {
	p := &Path{}
	for _, l := range slices.Concat(parts...) {
		switch {
		case l.Paused:
			p.Pause = l
		case l.PerGroup:
			p.perGroup = append(p.perGroup, l)
		case l.rated():
			p.Rates = append(p.Rates, l)
		default:
			p.limits = append(p.limits, l)
		}
	}
	if len(p.limits)+len(p.Rates)+len(p.perGroup) == 0 && p.Pause == nil {
		return Unlimited
	}
	p.sortLimits()
	return p
}

// sortLimits puts its limits in order.
func (p *Path) sortLimits() {
	slices.SortFunc(p.limits, func(a, b *Limit) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	for _, l := range p.limits {
		p.Refs = append(p.Refs, l.Ref)
	}
}

// Repath has a tasklist find its limits again.
func (l *List) Repath() {
	l.own = slices.Concat(l.domain.paths.wide, l.domain.paths.byList[l.Name])
	l.wide, l.paths = newPath(l.own), map[string]*Path{}
}

// Unavailable tells whether triggers of a column cannot be had just now.
func (l *List) Unavailable(at table.Column) bool {
	p := l.TypePath(at.Type)
	return p.Pause != nil || p.meet(at, (*Limit).Closed) != nil
}

// Short tells whether triggers of a column could not be had the last time.
func (l *List) Short(at table.Column) bool {
	p := l.TypePath(at.Type)
	return p.Pause != nil || p.meet(at, func(lim *Limit) bool { return lim.Unknown > 0 || lim.short }) != nil
}

// Spare is how many triggers may be given a slot of each limit of a path without asking.
func (s *Limits) Spare(p *Path, most int) int {
	if p.Pause != nil || len(p.Rates) > 0 { // the tables count starts
		return 0
	}
	for _, l := range p.limits {
		most = min(most, s.spare(l))
	}
	return most
}

// Use notes that n spare slots of each were booked.
func (s *Limits) Use(p *Path, n int) {
	for _, l := range p.limits {
		s.use(l, n)
	}
}

// grouped tells whether a column is of one group.
func grouped(at table.Column) bool { return at.Group != "" && at.Group != table.NoGroup }

// PathOf is what is booked for triggers of a column.
func (l *List) PathOf(at table.Column) *Path {
	p := l.TypePath(at.Type)
	if len(p.perGroup) == 0 || !grouped(at) {
		return p
	}
	one := &Path{Rates: p.Rates, Pause: p.Pause, perGroup: p.perGroup, counted: p.perGroup}
	one.limits = make([]*Limit, 0, len(p.limits)+len(p.perGroup))
	one.limits = append(one.limits, p.limits...)
	for _, of := range p.perGroup {
		one.limits = append(one.limits, l.domain.shard.groupLimit(of, at.Group))
	}
	one.sortLimits()
	return one
}

// groupOf is the first limit of a column's group of which f is true, or nil. One that is not in use is none.
func (p *Path) groupOf(at table.Column, f func(*Limit) bool) *Limit {
	if !grouped(at) || at.Group == table.AnyGroup {
		return nil
	}
	for _, of := range p.perGroup {
		if l := of.ByGroup.Limits[at.Group]; l != nil && f(l) {
			return l
		}
	}
	return nil
}

// HasGroup tells whether each limit of a column's group is in use.
func (p *Path) HasGroup(at table.Column) bool {
	return !grouped(at) || firstOf(p.perGroup, func(of *Limit) bool { return of.ByGroup.Limits[at.Group] == nil }) == nil
}

// Covering are the limits in use that count what is of a column.
func (l *List) Covering(at table.Column) iter.Seq[*Limit] {
	return func(yield func(*Limit) bool) {
		p := l.TypePath(at.Type)
		for _, lim := range p.limits {
			if !yield(lim) {
				return
			}
		}
		if !grouped(at) {
			return
		}
		for _, of := range p.perGroup {
			if lim := of.ByGroup.Limits[at.Group]; lim != nil && !yield(lim) {
				return
			}
		}
	}
}

// UnknownGroups tells whether a column has triggers of groups that are to be known, and are not.
func (l *List) UnknownGroups(at table.Column) bool {
	return at.Group == "" && len(l.TypePath(at.Type).perGroup) > 0
}

// Lacks tells whether what is of a column lacks a slot just now, or is not to be had.
func (l *List) Lacks(at table.Column) bool {
	if l.Unavailable(at) {
		return true
	}
	lim := l.TypePath(at.Type).groupOf(at, (*Limit).Closed)
	if lim != nil {
		l.domain.shard.park(lim, l, at)
	}
	return lim != nil
}

// Hold counts an attempt that is asked for in all limits of a path.
func (p *Path) Hold(m Member) {
	for _, lim := range p.limits {
		lim.hold(m, Holding{undecided: true})
	}
}

// Unhold frees the slots of an attempt that was asked for and does not run. One that runs keeps them.
func (l *List) Unhold(at table.Column, m Member) {
	for lim := range l.Covering(at) {
		if lim.Slots[m].undecided {
			l.domain.shard.release(lim, m)
		}
	}
}

// Granted notes that an attempt runs.
func (l *List) Granted(at table.Column, m Member, now time.Duration, deadlineMS int64) {
	for lim := range l.Covering(at) {
		lim.granted(m, now, deadlineMS)
	}
}

// Contended reports whether something waits for a limit of a path, or one had no slot.
func (p *Path) Contended() bool {
	return p.Find(func(l *Limit) bool { return l.Blocked != 0 || l.waiters.any() }) != nil
}
