package match

import (
	"iter"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// path is the limits that triggers of a type need slots of in a tasklist: all of them, or none is booked. They are in the
// order of their references.
type path struct {
	limits []*limit
	refs   []table.Ref
	// rates are those that each of them waits for.
	rates []*limit
	// perGroup are those that count per group. Of what has a group and is to be booked, counted are the same, and limits has those
	// of its group.
	perGroup, counted []*limit
	// pause holds all of them up, if there is one.
	pause *limit
}

// unlimited is the path of what no limit covers and no pause holds up.
var unlimited = &path{}

// has tells whether a limit is one of it.
func (p *path) has(l *limit) bool { return slices.Contains(p.limits, l) }

// waits tells whether what is of it waits for a limit or a rate.
func (p *path) waits(l *limit) bool { return p.has(l) || slices.Contains(p.rates, l) }

// within tells whether slots of all of p are among those of booked.
func (p *path) within(booked *path) bool {
	return p == booked || !slices.ContainsFunc(p.limits, func(l *limit) bool { return !booked.has(l) })
}

// taken is what holds its triggers up just now: a pause, or the first limit of which no slot can be had; or nil.
func (p *path) taken() *limit {
	if p.pause != nil {
		return p.pause
	}
	return p.meet((*limit).closed)
}

// meet is the first limit or rate of which f is true, or nil.
func (p *path) meet(f func(*limit) bool) *limit {
	if l := p.find(f); l != nil {
		return l
	}
	return firstOf(p.rates, f)
}

// asked are the limits and rates that the tables are asked for.
func (p *path) asked() []*limit { return slices.Concat(p.counted, p.limits, p.rates) }

// find is the first limit of which f is true, or nil.
func (p *path) find(f func(*limit) bool) *limit { return firstOf(p.limits, f) }

// firstOf is the first of some limits of which f is true, or nil.
func firstOf(all []*limit, f func(*limit) bool) *limit {
	if i := slices.IndexFunc(all, f); i >= 0 {
		return all[i]
	}
	return nil
}

// holds tells whether an attempt uses a slot of it.
func (p *path) holds(m member) bool {
	return p.find(func(l *limit) bool { return l.holds(m) }) != nil
}

// paths finds limits by what they cover, of which a domain may have tens of thousands. It is made again whenever the limits
// of a domain change.
type paths struct {
	// wide cover all.
	wide           []*limit
	byList, byType map[string][]*limit
}

func newPaths(all []*limit) paths {
	p := paths{byList: map[string][]*limit{}, byType: map[string][]*limit{}}
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
func (p *paths) covering(tasklist, typ string) iter.Seq[*limit] {
	return func(yield func(*limit) bool) {
		for _, some := range [...][]*limit{p.wide, p.byList[tasklist], p.byType[typ]} {
			for _, l := range some {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// path is that of triggers of a type.
func (l *list) path(typ string) *path {
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

func newPath(parts ...[]*limit) *path {
	p := &path{}
	for _, l := range slices.Concat(parts...) {
		switch {
		case l.Paused:
			p.pause = l
		case l.PerGroup:
			p.perGroup = append(p.perGroup, l)
		case l.rated():
			p.rates = append(p.rates, l)
		default:
			p.limits = append(p.limits, l)
		}
	}
	if len(p.limits)+len(p.rates)+len(p.perGroup) == 0 && p.pause == nil {
		return unlimited
	}
	p.order()
	return p
}

// order puts its limits in order.
func (p *path) order() {
	slices.SortFunc(p.limits, func(a, b *limit) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	for _, l := range p.limits {
		p.refs = append(p.refs, l.Ref)
	}
}

// repath has a tasklist find its limits again.
func (l *list) repath() {
	l.own = slices.Concat(l.domain.paths.wide, l.domain.paths.byList[l.Name])
	l.wide, l.paths = newPath(l.own), map[string]*path{}
}

// blocked tells whether triggers of a column cannot be had just now.
func (l *list) blocked(at table.Column) bool {
	p := l.path(at.Type)
	return p.taken() != nil || p.perGroupOf(at, (*limit).closed) != nil
}

// short tells whether triggers of a column could not be had the last time.
func (l *list) short(at table.Column) bool {
	p, short := l.path(at.Type), func(lim *limit) bool { return lim.unknown > 0 || lim.short }
	return p.pause != nil || p.meet(short) != nil || p.perGroupOf(at, short) != nil
}

// spareOf is how many triggers may be given a slot of each limit of a path without asking.
func (s *Shard) spareOf(p *path, most int) int {
	if p.pause != nil || len(p.rates) > 0 { // the tables count starts
		return 0
	}
	for _, l := range p.limits {
		most = min(most, s.spare(l))
	}
	return most
}

// useAll notes that n spare slots of each were booked.
func (s *Shard) useAll(p *path, n int) {
	for _, l := range p.limits {
		s.use(l, n)
	}
}
