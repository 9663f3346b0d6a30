// Package report is what operators read of a shard: which workers polled recently.
//
// Owns: the workers that polled within the last five minutes, a bounded number of them. Never does: decide anything. On failure: nothing
// can fail; what is known is lost with the owner of the shard.
package report

import (
	"cmp"
	linked "container/list"
	"slices"
	"time"
)

const (
	// pollersMax is how many pollers a shard remembers: 15 MB if each has the longest names.
	pollersMax = 8192
	// pollerFor is for how long one is shown after its last poll.
	pollerFor = 5 * time.Minute
	// pollerTypesMax is how many of its types are.
	pollerTypesMax = 16
	// pageMax is how many one page has: a third of a megabyte if each has the longest names.
	pageMax = 250
)

// Seen is a worker that polled a tasklist.
type Seen struct {
	Worker, Version string
	// Types are the first that its last poll accepts, sorted, of TypesN; none = all.
	Types  []string
	TypesN int
	// Ago is how long ago that poll came. Waiting counts its polls that wait.
	Ago     time.Duration
	Waiting int
}

// Poll is what a poll says of its worker. Types are sorted, each once; none = all.
type Poll struct {
	Domain, Tasklist, Worker, Version string
	Types                             []string
}

// Pollers are the workers that polled recently.
type Pollers struct {
	// began is when the first poll could be seen.
	began  time.Duration
	byName map[pollerName]*Poller
	// byDomain has those of each domain, the one seen last first.
	byDomain map[string]*linked.List
}

// NewPollers knows of no poll so far.
func NewPollers(now time.Duration) Pollers {
	return Pollers{began: now, byName: map[pollerName]*Poller{}, byDomain: map[string]*linked.List{}}
}

type pollerName struct{ domain, tasklist, worker string }

// Poller is one of them. One that is forgotten while polls of it wait is found no more.
type Poller struct {
	pollerName
	version string
	types   []string
	typesN  int
	seen    time.Duration
	waiting int
	// place is that in its domain.
	place *linked.Element
}

// Version is that of its last poll.
func (p *Poller) Version() string { return p.version }

// Wait counts n more of its polls that wait; fewer, if n is negative.
func (p *Poller) Wait(n int) { p.waiting += n }

// Saw notes a poll. For a worker that is known with its types it allocates nothing.
func (ps *Pollers) Saw(m Poll, now time.Duration) *Poller {
	name := pollerName{m.Domain, m.Tasklist, m.Worker}
	p := ps.byName[name]
	if p == nil {
		p = ps.add(name, now)
	} else {
		ps.byDomain[m.Domain].MoveToFront(p.place)
	}
	p.seen, p.typesN = now, len(m.Types)
	if p.version != m.Version {
		p.version = m.Version
	}
	if shown := m.Types[:min(len(m.Types), pollerTypesMax)]; !slices.Equal(p.types, shown) {
		p.types = slices.Clone(shown)
	}
	return p
}

// add remembers one more, in place of others if need be (I14): the last quarter of the places is for domains that have a
// sixteenth of them at most, and what these need is taken from the domain with the most.
func (ps *Pollers) add(name pollerName, now time.Duration) *Poller {
	mine := ps.of(name.domain, now)
	switch n := len(ps.byName); {
	case n >= pollersMax-pollersMax/4 && mine.Len() >= pollersMax/16:
		ps.forget(mine)
	case n >= pollersMax: // few do that come here, so those of other domains are looked through
		most := mine
		for _, of := range ps.byDomain {
			if of.Len() > most.Len() {
				most = of
			}
		}
		ps.forget(most)
	}
	p := &Poller{pollerName: name}
	p.place = mine.PushFront(p)
	ps.byName[name], ps.byDomain[name.domain] = p, mine
	return p
}

// forget forgets the one of a domain that was seen longest ago.
func (ps *Pollers) forget(of *linked.List) {
	p := of.Remove(of.Back()).(*Poller)
	delete(ps.byName, p.pollerName)
	if of.Len() == 0 {
		delete(ps.byDomain, p.domain)
	}
}

// of are those of a domain that have polled recently.
func (ps *Pollers) of(domain string, now time.Duration) *linked.List {
	of := ps.byDomain[domain]
	if of == nil {
		return linked.New()
	}
	for of.Len() > 0 && now-of.Back().Value.(*Poller).seen >= pollerFor {
		ps.forget(of)
	}
	return of
}

// ofTasklist are those of a tasklist, the one seen last first.
func (ps *Pollers) ofTasklist(domain, tasklist string, now time.Duration) (found []*Poller) {
	for e := ps.of(domain, now).Front(); e != nil; e = e.Next() {
		if p := e.Value.(*Poller); p.tasklist == tasklist {
			found = append(found, p)
		}
	}
	return found
}

// Page is some of the workers that polled a tasklist recently.
type Page struct {
	// Seen are by name, those without a name last. More: there are more behind, of All.
	Seen []Seen
	More bool
	All  int
	// Known is for how long the owner has served the shard: it saw no earlier poll.
	Known time.Duration
}

// Page is up to limit workers that polled a tasklist, behind the one called after; from the first, if that is empty.
func (ps *Pollers) Page(domain, tasklist, after string, limit int, now time.Duration) Page {
	found := ps.ofTasklist(domain, tasklist, now)
	seen := Page{All: len(found), Known: now - ps.began}
	if after != "" {
		found = slices.DeleteFunc(found, func(p *Poller) bool { return byWorker(p.worker, after) <= 0 })
	}
	slices.SortFunc(found, func(a, b *Poller) int { return byWorker(a.worker, b.worker) })
	n := min(len(found), limit, pageMax)
	for _, p := range found[:n] {
		seen.Seen = append(seen.Seen, p.shown(now))
	}
	seen.More = n < len(found)
	return seen
}

// shown is what is known of a worker.
func (p *Poller) shown(now time.Duration) Seen {
	return Seen{
		Worker: p.worker, Version: p.version, Types: slices.Clone(p.types), TypesN: p.typesN,
		Ago: max(0, now-p.seen), Waiting: p.waiting,
	}
}

// Serving is the workers that may take a task.
type Serving struct {
	// All polled the tasklist recently. Takers are those of them that accept the type; one with more types than are remembered counts, too.
	All, Takers int
	// Last is the one that polled last, of the takers if there are some; nil = there is none.
	Last *Seen
	// Known is as in Page.
	Known time.Duration
}

// Serving is who polled a tasklist recently for tasks of a type.
func (ps *Pollers) Serving(domain, tasklist, typ string, now time.Duration) Serving {
	s := Serving{Known: now - ps.began}
	var last *Poller
	for _, p := range ps.ofTasklist(domain, tasklist, now) {
		takes := p.typesN == 0 || p.typesN > len(p.types) || slices.Contains(p.types, typ)
		if last == nil || takes && s.Takers == 0 {
			last = p
		}
		s.All++
		if takes {
			s.Takers++
		}
	}
	if last != nil {
		seen := last.shown(now)
		s.Last = &seen
	}
	return s
}

// byWorker is the order of pages: an empty name is no cursor, so it comes last.
func byWorker(a, b string) int {
	if (a == "") != (b == "") {
		return cmp.Compare(len(b), len(a))
	}
	return cmp.Compare(a, b)
}
