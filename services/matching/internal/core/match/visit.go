package match

import (
	"cmp"
	linked "container/list"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// A poll of several tasklists waits at its frontend. To a tasklist it is a visit: it gets what can be had now, or is given up at once. Where
// visits found nothing, the tasklist remembers which frontends have such polls, and tells one of them what comes that no poll waits for here.
// See contracts/decisions, number 34.
const (
	// interestFor is for how long a frontend is remembered after a visit: it sends the next one before.
	interestFor = 3 * time.Second
	// callEvery bounds how often a tasklist has frontends notified, calledAgain how often one of them that has sent no poll since. Another one
	// is notified after callNext.
	callEvery   = 2 * time.Millisecond
	callNext    = 20 * time.Millisecond
	calledAgain = 100 * time.Millisecond
	// interestsMax is how many a shard remembers, and a domain a quarter of them: 26 MB if each has the most and longest types.
	interestsMax = 4096
)

// PollsWanted has a frontend send polls to a tasklist.
type PollsWanted struct {
	Frontend         string
	Domain, Tasklist string
	// Wanted is what they are wanted for, most urgent first.
	Wanted []Wanted
}

// interest is a frontend that has polls which visit a tasklist for some types.
type interest struct {
	list     *list
	frontend string
	types    []string // sorted, each once; empty = all
	key      string   // types as one string
	until    time.Duration
	// calledAt is when it was notified last that polls are wanted; 0 = not since its last visit.
	calledAt time.Duration
	// inDomain and inAll are its places.
	inDomain, inAll *linked.Element
}

// interests are all of a shard. It decides nothing: what is forgotten comes back with the next visit.
type interests struct {
	// byDomain has those of each domain, and all has all of them, the newest first.
	byDomain map[string]*linked.List
	all      linked.List
}

// visited notes that a frontend has sent a poll: it may be notified again.
func (l *list) visited(frontend string) {
	for _, one := range l.interests {
		if one.frontend == frontend {
			one.calledAt = 0
		}
	}
	l.callAt = 0
}

// remember notes that a visit found nothing.
func (s *Shard) remember(p *poll) {
	l := p.list
	i := slices.IndexFunc(l.interests, func(o *interest) bool { return o.frontend == p.visit && o.key == p.key })
	if i < 0 {
		s.interests.makeRoom(l.Domain)
		i = len(l.interests)
		l.interests = append(l.interests, s.interests.add(&interest{list: l, frontend: p.visit, types: p.types, key: p.key}))
	}
	one := l.interests[i]
	one.until, one.calledAt = s.now.Mono+interestFor, 0
	s.interests.byDomain[l.Domain].MoveToFront(one.inDomain)
	s.interests.all.MoveToFront(one.inAll)
	s.tellUp(l)
}

func (r *interests) add(one *interest) *interest {
	if r.byDomain == nil {
		r.byDomain = map[string]*linked.List{}
	}
	mine := r.byDomain[one.list.Domain]
	if mine == nil {
		mine = linked.New()
		r.byDomain[one.list.Domain] = mine
	}
	one.inDomain, one.inAll = mine.PushFront(one), r.all.PushFront(one)
	return one
}

// makeRoom forgets one, if need be: the oldest of a domain that has its part, else of the one that has the most (I14).
func (r *interests) makeRoom(domain string) {
	switch mine := r.byDomain[domain]; {
	case mine != nil && mine.Len() >= interestsMax/4:
		r.forget(mine.Back().Value.(*interest))
	case r.all.Len() >= interestsMax: // few do that come here, so all domains are looked through
		var most *linked.List
		for _, of := range r.byDomain {
			if most == nil || of.Len() > most.Len() || of.Len() == most.Len() && of.Back().Value.(*interest).until < most.Back().Value.(*interest).until {
				most = of
			}
		}
		r.forget(most.Back().Value.(*interest))
	}
}

func (r *interests) forget(one *interest) {
	r.all.Remove(one.inAll)
	of := r.byDomain[one.list.Domain]
	if of.Remove(one.inDomain); of.Len() == 0 {
		delete(r.byDomain, one.list.Domain)
	}
	one.list.interests = slices.DeleteFunc(one.list.interests, func(o *interest) bool { return o == one })
}

// expire forgets those that were not renewed.
func (r *interests) expire(now time.Duration) {
	for e := r.all.Back(); e != nil && e.Value.(*interest).until <= now; e = r.all.Back() {
		r.forget(e.Value.(*interest))
	}
}

// leaves gives a visit up that finds nothing here. It returns false where it is to be looked at as every poll is.
func (s *Shard) leaves(p *poll) bool {
	l, now := p.list, s.now.Mono
	if p.visit == "" || len(p.granted) > 0 || s.drain.on || now >= p.until+pollGrace {
		return false
	}
	switch {
	case p.pending > 0:
		s.polls.look(p, p.until+pollGrace)
		return true
	case l.domain.down && now < min(p.since+upDownAfter, p.until): // only polls that are here get something
		s.polls.look(p, min(p.since+upDownAfter, p.until))
		return true
	case !l.domain.down && l.mayGet(p):
		if !p.overdue {
			p.overdue = true
			l.overdue = append(l.overdue, p)
		}
		s.polls.look(p, min(now+upBusyAfter, p.until+pollGrace))
		return true
	}
	s.giveUp(p, Move{Poll: p.id, Nothing: true}, table.Column{})
	if l.Partition == 0 { // a partition below tells its parent
		s.remember(p)
	}
	return true
}

// standIn has a tasklist wait for what a column lacks, in place of the polls that wait at frontends.
func (s *Shard) standIn(l *list, at table.Column) {
	if len(l.interests) == 0 || l.unknownGroups(at) {
		return
	}
	p := l.path(at.Type)
	lim := p.taken()
	if lim == nil {
		lim = p.perGroupOf(at, (*limit).taken)
	}
	if lim != nil {
		s.wait(lim, l, at.Priority)
	}
}

// callPolls has frontends send polls for what waits in a tasklist. It returns whether there is more to tell, at l.callAt.
func (s *Shard) callPolls(l *list) (more bool) {
	s.interests.expire(s.now.Mono)
	if len(l.interests) == 0 || s.drain.on {
		return false
	}
	l.saidAt, l.callAt = s.now.Mono, 0
	wanted := s.branch(l).Wanted
	first := len(s.fx.PollsWanted)
	for _, w := range wanted {
		one := l.called(w.Type, s.now.Mono)
		if one == nil {
			continue
		}
		one.calledAt = s.now.Mono
		calls := s.fx.PollsWanted[first:]
		at := slices.IndexFunc(calls, func(c PollsWanted) bool { return c.Frontend == one.frontend })
		if at < 0 {
			at = len(calls)
			s.fx.PollsWanted = append(s.fx.PollsWanted, PollsWanted{Frontend: one.frontend, Domain: l.Domain, Tasklist: l.Name})
		}
		to := &s.fx.PollsWanted[first+at]
		to.Wanted = append(to.Wanted, w)
	}
	l.callAt = s.now.Mono + calledAgain
	if slices.ContainsFunc(l.interests, func(o *interest) bool { return o.calledAt == 0 }) {
		l.callAt = s.now.Mono + callNext
	}
	return len(wanted) > 0
}

// called is which frontend to tell of a type: one that is notified just now, or else has not been notified since it sent a poll, or else the one
// notified longest ago. nil: none takes it, or all were notified recently.
func (l *list) called(typ string, now time.Duration) *interest {
	rank := func(o *interest) time.Duration {
		if o.calledAt == now {
			return -1
		}
		return o.calledAt
	}
	var best *interest
	for _, one := range l.interests {
		if !accepts(one.types, typ) || one.calledAt > 0 && one.calledAt < now && now-one.calledAt < calledAgain {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(rank(one), rank(best)), cmp.Compare(best.until, one.until)) < 0 {
			best = one
		}
	}
	return best
}
