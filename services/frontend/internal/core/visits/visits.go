// Package visits decides where polls of several tasklists go.
//
// Owns: the order in which such a poll visits its tasklists, by their weights; which of them are known to have nothing; and the polls that rest
// here, since no tasklist had anything for them.
//
// Never does: I/O, or reading a clock or a random source; both come in as values. Who has a poll is its caller's business.
//
// On failure: what tasklists say is a hint that may be lost. So one poll of those that rest visits each of its tasklists every second or two.
// See contracts/decisions, number 34.
package visits

import (
	"container/heap"
	linked "container/list"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

const (
	// KnownFor is for how long a tasklist is known to have nothing: its owner tells of what comes for longer. Up to as long again, by chance,
	// so that visits of many polls come apart.
	KnownFor = time.Second
	// AwayFor is the same for one that no one serves.
	AwayFor = 100 * time.Millisecond
	// WantedFor is for how long it is remembered what a tasklist wants polls for, of those that come to rest.
	WantedFor = time.Second
	// unusedMax is how many sets of polls are remembered of which none is left, while something is known of them: the next poll of the
	// same worker may come soon.
	unusedMax = 4096
	// dueMax is how many visits again each look has of a domain: polls that each accept other types cost the engine a visit each, and their
	// domain waits for it, not the others (I14).
	dueMax = 50
)

// Tasklist names one.
type Tasklist struct{ Domain, Name string }

// Entry is one of a poll's tasklists.
type Entry struct {
	Name string
	// Weight is at least 1.
	Weight int
}

// Want is triggers of a type for which a tasklist wants polls.
type Want struct {
	Type string
	// Triggers is how many there are. Limited: perhaps none may start, so one poll is enough.
	Triggers int
	Limited  bool
}

// Book knows all polls of several tasklists of a frontend. It is not safe for concurrent use.
type Book struct {
	dice  *rand.Rand
	lists map[Tasklist]*list
	// sets are in no order, each at its index. unused counts those without a poll.
	sets   []*set
	unused int
	// begin is where the next look for those that are due begins: at the first that the one before had no room for.
	begin int
}

// list is a tasklist that polls name.
type list struct {
	name Tasklist
	// sets are of its polls, by the types that they accept.
	sets  map[string]*set
	wants []want
}

// want is what is left of a Want that came at an instant.
type want struct {
	Want
	at time.Time
}

// open tells whether polls of a set are to go there for it.
func (w *want) open(s *set, now time.Time) bool {
	return w.Triggers > 0 && now.Sub(w.at) < WantedFor && s.accepts(w.Type)
}

// set is the polls of a tasklist that accept the same types.
type set struct {
	list  *list
	types []string // sorted; none = all
	key   string
	at    int
	// polls counts them; kept: there is none, and it is remembered. resting are those at rest, first come first.
	polls   int
	kept    bool
	resting linked.List
	// nothingUntil is until when the tasklist is known to have nothing for them, askedUntil until when it is not visited for that.
	nothingUntil, askedUntil time.Time
}

// Poll is a poll of several tasklists.
type Poll struct {
	// Number is its caller's, and higher for a later one.
	Number uint64
	max    int
	in     []place
	// todo are the places that it has yet to visit. at is the place where it is, since an instant; -1 = at rest.
	todo  []int
	at    int
	since time.Time
	// due: it was chosen to visit tasklists of which it is time.
	due bool
}

// place is one of its tasklists.
type place struct {
	*set
	rest *linked.Element
}

// New makes a book of no polls.
func New(dice *rand.Rand) *Book { return &Book{dice: dice, lists: map[Tasklist]*list{}} }

// Add takes a poll of up to most tasks, at least 1, of some types, none = all. It is to visit all its tasklists: in an order by their weights, those
// last that are known to have nothing.
func (b *Book) Add(number uint64, domain string, entries []Entry, types []string, most int, now time.Time) *Poll {
	types = slices.Compact(slices.Sorted(slices.Values(types)))
	key := strings.Join(types, "\x00")
	p := &Poll{Number: number, max: most, at: -1}
	weights := make([]int, len(entries))
	for i, e := range entries {
		weights[i] = e.Weight
		s := b.set(Tasklist{domain, e.Name}, types, key)
		if s.polls++; s.kept {
			s.kept = false
			b.unused--
		}
		p.in = append(p.in, place{set: s})
	}
	p.todo = Order(b.dice, weights)
	slices.SortStableFunc(p.todo, func(x, y int) int { return p.in[x].idle(now) - p.in[y].idle(now) })
	return p
}

// idle is 1 where the tasklist is known to have nothing, else 0.
func (s *set) idle(now time.Time) int {
	if now.Before(s.nothingUntil) {
		return 1
	}
	return 0
}

// set finds or makes one.
func (b *Book) set(of Tasklist, types []string, key string) *set {
	l := b.lists[of]
	if l == nil {
		l = &list{name: of, sets: map[string]*set{}}
		b.lists[of] = l
	}
	s := l.sets[key]
	if s == nil {
		s = &set{list: l, types: types, key: key, at: len(b.sets)}
		l.sets[key], b.sets = s, append(b.sets, s)
	}
	return s
}

// Next is where a poll goes that no tasklist has. Not ok: it is at rest, until Wanted or Due returns it.
func (b *Book) Next(p *Poll, now time.Time) (to Tasklist, ok bool) {
	if len(p.todo) == 0 {
		p.todo = p.wanted(now)
	}
	if len(p.todo) > 0 {
		p.at, p.todo, p.since = p.todo[0], p.todo[1:], now
		return p.in[p.at].list.name, true
	}
	p.at = -1
	for i := range p.in {
		p.in[i].rest = p.in[i].resting.PushBack(p)
	}
	return Tasklist{}, false
}

// wanted is the first place where a poll is wanted, if there is one.
func (p *Poll) wanted(now time.Time) []int {
	for i := range p.in {
		s := p.in[i].set
		for j := range s.list.wants {
			if w := &s.list.wants[j]; w.open(s, now) {
				w.take(p)
				return []int{i}
			}
		}
	}
	return nil
}

// take notes that a poll goes there.
func (w *want) take(p *Poll) {
	if w.Triggers -= p.max; w.Limited {
		w.Triggers = 0
	}
}

func (s *set) accepts(typ string) bool {
	_, found := slices.BinarySearch(s.types, typ)
	return found || len(s.types) == 0
}

// Nothing notes that the tasklist where a poll was has nothing for it. What it had said before the poll went there is void.
func (b *Book) Nothing(p *Poll, now time.Time) {
	if p.at < 0 {
		return
	}
	s := p.in[p.at].set
	for i := range s.list.wants {
		switch w := &s.list.wants[i]; {
		case !w.open(s, now):
		case w.at.After(p.since):
			return
		default:
			w.Triggers = 0
		}
	}
	s.nothingUntil = now.Add(KnownFor + time.Duration(b.dice.Int64N(int64(KnownFor))))
	s.askedUntil = s.nothingUntil
}

// Away notes that no one serves the tasklist where a poll was to go. Nor does it want anything.
func (b *Book) Away(p *Poll, now time.Time) {
	if p.at >= 0 {
		s := p.in[p.at].set
		s.list.wants = nil
		s.nothingUntil = now.Add(AwayFor)
		s.askedUntil = s.nothingUntil
	}
}

// Wanted takes in what a tasklist wants polls for, in place of what it wanted before. It returns those that are to go there, no more at rest.
func (b *Book) Wanted(of Tasklist, all []Want, now time.Time) []*Poll {
	l := b.lists[of]
	if l == nil {
		return nil
	}
	l.wants = l.wants[:0]
	var called []*Poll
	for _, one := range all {
		w := want{one, now}
		for first := l.firstComeFirst(w.Type); w.Triggers > 0 && len(first) > 0; {
			s := first[0]
			p := s.resting.Front().Value.(*Poll)
			w.take(p)
			b.wake(p)
			p.todo = append(p.todo[:0], slices.IndexFunc(p.in, func(at place) bool { return at.set == s }))
			called = append(called, p)
			if s.resting.Len() == 0 {
				heap.Pop(&first)
			} else {
				heap.Fix(&first, 0)
			}
		}
		if w.Triggers > 0 {
			l.wants = append(l.wants, w)
		}
	}
	return called
}

// firstComeFirst are the sets that accept a type and have polls at rest. Those that accept it are not known to have nothing any more.
func (l *list) firstComeFirst(typ string) byFirst {
	var some byFirst
	for _, s := range l.sets {
		if !s.accepts(typ) {
			continue
		}
		if s.nothingUntil = (time.Time{}); s.resting.Len() > 0 {
			some = append(some, s)
		}
	}
	heap.Init(&some)
	return some
}

// Due returns the polls at rest that are to visit tasklists again, one for all that accept the same types, and dueMax for a domain. They rest no more.
func (b *Book) Due(now time.Time) []*Poll {
	for i := len(b.sets) - 1; i >= 0 && b.unused > 0; i-- {
		if s := b.sets[i]; s.kept && s.idle(now) == 0 {
			b.unused--
			b.drop(s)
		}
	}
	var due []*Poll
	visits, begin, late := map[string]int{}, b.begin, false
	for i := range b.sets {
		at := (begin + i) % len(b.sets)
		s := b.sets[at]
		if s.resting.Len() == 0 || now.Before(s.askedUntil) {
			continue
		}
		if visits[s.list.name.Domain] >= dueMax {
			if !late {
				b.begin, late = at, true
			}
			continue
		}
		visits[s.list.name.Domain]++
		s.askedUntil = now.Add(KnownFor)
		p := s.resting.Front().Value.(*Poll)
		if !p.due {
			p.due, p.todo = true, p.todo[:0]
			due = append(due, p)
		}
		p.todo = append(p.todo, slices.IndexFunc(p.in, func(at place) bool { return at.set == s }))
	}
	for _, p := range due {
		p.due = false
		b.wake(p)
	}
	return due
}

// wake has a poll rest no more.
func (b *Book) wake(p *Poll) {
	for i := range p.in {
		if at := &p.in[i]; at.rest != nil {
			at.resting.Remove(at.rest)
			at.rest = nil
		}
	}
}

// Renew forgets that tasklists have nothing whose owner is replaced: it does not know who waits.
func (b *Book) Renew(replaced func(of Tasklist) bool) {
	for of, l := range b.lists {
		if !replaced(of) {
			continue
		}
		for _, s := range l.sets {
			s.nothingUntil, s.askedUntil = time.Time{}, time.Time{}
		}
	}
}

// Remove forgets a poll that is answered.
func (b *Book) Remove(p *Poll, now time.Time) {
	b.wake(p)
	for _, at := range p.in {
		s := at.set
		s.polls--
		switch {
		case s.polls > 0:
		case s.idle(now) > 0 && b.unused < unusedMax:
			s.kept = true
			b.unused++
		default:
			b.drop(s)
		}
	}
}

// drop forgets a set.
func (b *Book) drop(s *set) {
	delete(s.list.sets, s.key)
	if len(s.list.sets) == 0 {
		delete(b.lists, s.list.name)
	}
	last := len(b.sets) - 1
	b.sets[s.at] = b.sets[last]
	b.sets[s.at].at = s.at
	b.sets[last] = nil
	b.sets = b.sets[:last]
}
