package match

import (
	"cmp"
	linked "container/list"
	"slices"
	"time"
)

const (
	// pollersMax is how many pollers a shard remembers: 15 MB if each has the longest names.
	pollersMax = 8192
	// pollerFor is for how long one is remembered after its last poll.
	pollerFor = 5 * time.Minute
	// pollerTypesMax is how many of its types are.
	pollerTypesMax = 16
	// pollersBytesMax bounds one list of them.
	pollersBytesMax = 384 << 10
)

// PollerSeen is a worker that polled a tasklist.
type PollerSeen struct {
	Worker, Version string
	// Types are the first that its last poll accepts, sorted, of TypesN; none = all.
	Types  []string
	TypesN int
	// Ago is how long ago that poll came. Waiting counts its polls that wait.
	Ago     time.Duration
	Waiting int
}

// bytes is at most about what it takes in an answer.
func (p *PollerSeen) bytes() int {
	n := 64 + len(p.Worker) + len(p.Version)
	for _, typ := range p.Types {
		n += 4 + len(typ)
	}
	return n
}

// pollers are the workers that polled recently. It takes no decision and is for people: it is lost with the owner.
type pollers struct {
	byName map[pollerName]*poller
	// byDomain has those of each domain, and all has all of them, the one seen last first.
	byDomain map[string]*linked.List
	all      linked.List
}

type pollerName struct{ domain, tasklist, worker string }

// poller is one of them. One that is forgotten while polls of it wait is found no more.
type poller struct {
	pollerName
	version string
	types   []string
	typesN  int
	seen    time.Duration
	waiting int
	// inDomain and inAll are its places.
	inDomain, inAll *linked.Element
}

// saw notes a poll of some sorted types. For a worker that is known with these it allocates nothing.
func (ps *pollers) saw(m *Poll, types []string, now time.Duration) *poller {
	name := pollerName{m.Domain, m.Tasklist, m.Worker}
	p := ps.byName[name]
	if p == nil {
		p = ps.add(name, now)
	} else {
		ps.byDomain[m.Domain].MoveToFront(p.inDomain)
		ps.all.MoveToFront(p.inAll)
	}
	p.seen, p.typesN = now, len(types)
	if p.version != m.Version {
		p.version = m.Version
	}
	if shown := types[:min(len(types), pollerTypesMax)]; !slices.Equal(p.types, shown) {
		p.types = slices.Clone(shown)
	}
	return p
}

// add remembers one more, in place of others if need be (I14): the last quarter of the places is for domains that have a
// sixteenth of them at most, and what these need is taken from the domain with the most.
func (ps *pollers) add(name pollerName, now time.Duration) *poller {
	ps.expire(now)
	if ps.byName == nil {
		ps.byName, ps.byDomain = map[pollerName]*poller{}, map[string]*linked.List{}
	}
	mine := ps.byDomain[name.domain]
	switch n := len(ps.byName); {
	case n >= pollersMax-pollersMax/4 && mine != nil && mine.Len() >= pollersMax/16:
		ps.forget(mine.Back().Value.(*poller))
	case n >= pollersMax: // few do that come here, so those of other domains are looked through
		var most *linked.List
		for _, of := range ps.byDomain {
			if most == nil || of.Len() > most.Len() {
				most = of
			}
		}
		ps.forget(most.Back().Value.(*poller))
	}
	if mine = ps.byDomain[name.domain]; mine == nil {
		mine = linked.New()
		ps.byDomain[name.domain] = mine
	}
	p := &poller{pollerName: name}
	p.inDomain, p.inAll = mine.PushFront(p), ps.all.PushFront(p)
	ps.byName[name] = p
	return p
}

func (ps *pollers) forget(p *poller) {
	delete(ps.byName, p.pollerName)
	ps.all.Remove(p.inAll)
	of := ps.byDomain[p.domain]
	if of.Remove(p.inDomain); of.Len() == 0 {
		delete(ps.byDomain, p.domain)
	}
}

// expire forgets those that have not polled for long.
func (ps *pollers) expire(now time.Duration) {
	for e := ps.all.Back(); e != nil && now-e.Value.(*poller).seen >= pollerFor; e = ps.all.Back() {
		ps.forget(e.Value.(*poller))
	}
}

// of are those of a tasklist, in no order.
func (ps *pollers) of(domain, tasklist string, now time.Duration) []*poller {
	ps.expire(now)
	of := ps.byDomain[domain]
	if of == nil {
		return nil
	}
	var found []*poller
	for e := of.Front(); e != nil; e = e.Next() {
		if p := e.Value.(*poller); p.tasklist == tasklist {
			found = append(found, p)
		}
	}
	return found
}

// PollersSeen are workers that polled a tasklist recently.
type PollersSeen struct {
	// Page are some of them, by name, those without a name last. More: there are more behind, of All.
	Page []PollerSeen
	More bool
	All  int
	// Known is for how long the owner has served the shard: it saw no earlier poll.
	Known time.Duration
}

// Pollers are up to limit workers that polled a tasklist, behind the one called after; from the first, where that is empty.
func (s *Shard) Pollers(domain, tasklist, after string, limit int, now Now) PollersSeen {
	found := s.pollers.of(domain, tasklist, now.Mono)
	seen := PollersSeen{All: len(found), Known: now.Mono - s.began}
	if after != "" {
		found = slices.DeleteFunc(found, func(p *poller) bool { return byWorker(p.worker, after) <= 0 })
	}
	slices.SortFunc(found, func(a, b *poller) int { return byWorker(a.worker, b.worker) })
	bytes := 0
	for _, p := range found {
		one := PollerSeen{
			Worker: p.worker, Version: p.version, Types: slices.Clone(p.types), TypesN: p.typesN,
			Ago: max(0, now.Mono-p.seen), Waiting: p.waiting,
		}
		if bytes += one.bytes(); len(seen.Page) == limit || bytes > pollersBytesMax {
			seen.More = true
			break
		}
		seen.Page = append(seen.Page, one)
	}
	return seen
}

// byWorker is the order of pages: an empty name is no cursor, so it comes last.
func byWorker(a, b string) int {
	if (a == "") != (b == "") {
		return cmp.Compare(len(b), len(a))
	}
	return cmp.Compare(a, b)
}

// fellSilent ends the polls of workers that send no more signs of life, so that no more tasks are granted to them. One whose grabs are under
// way is answered, too: what they bring is handed back. A worker that lives polls again.
func (s *Shard) fellSilent(all []SilentWorker) {
	if len(all) == 0 {
		return
	}
	silent := make(map[SilentWorker]bool, len(all))
	for _, w := range all {
		silent[w] = true
	}
	var ended []*poll
	for _, p := range s.polls.due.All() {
		if p.workerID != "" && silent[SilentWorker{p.list.Domain, p.workerID}] {
			ended = append(ended, p)
		}
	}
	slices.SortFunc(ended, func(a, b *poll) int { return cmp.Compare(a.order, b.order) })
	for _, p := range ended {
		s.answer(p)
	}
}
