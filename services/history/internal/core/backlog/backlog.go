// Package backlog counts the tasks of some tasklists and domains that lie in a partition's log and are not read yet.
//
// Owns: of each lane that is read up to its window, how many tasks of each of these tasklists lie behind, of their groups where
// these have a cap, and of the domains with a quota of what waits, with their bytes. Somebody else reads the messages, from Next on, and tells what they hold.
//
// Never does: decide anything of a task. The counts are a hint for frontends, which refuse submits above a cap.
//
// On failure: what has not been counted yet is missing, so a count is too low, never too high.
package backlog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Tasklist is one whose tasks are counted.
type Tasklist struct{ Domain, Name string }

// Queue is a tasklist, or what it has of one group, or a domain, if it has no name.
type Queue struct {
	Tasklist
	// Group is empty where it is the whole tasklist.
	Group string
}

// Amount is some tasks, and about how many bytes they take as stored.
type Amount struct{ Tasks, Bytes int64 }

// Caps are the tasklists with a cap on their queue, by its size. They are not changed once they are made.
type Caps struct {
	Of map[Tasklist]int64
	// PerGroup are the caps of each group of a tasklist.
	PerGroup map[Tasklist]int64
	// Bounded are the domains with a quota of what waits.
	Bounded map[string]bool
	// Domains are theirs, and those of the tasklists, sorted.
	Domains []string
}

// NewCaps makes them; nil where there are none.
func NewCaps(of, perGroup map[Tasklist]int64, bounded map[string]bool) *Caps {
	if len(of)+len(perGroup)+len(bounded) == 0 {
		return nil
	}
	c := &Caps{Of: of, PerGroup: perGroup, Bounded: bounded, Domains: slices.Collect(maps.Keys(bounded))}
	for _, all := range []map[Tasklist]int64{of, perGroup} {
		for l := range all {
			c.Domains = append(c.Domains, l.Domain)
		}
	}
	slices.Sort(c.Domains)
	c.Domains = slices.Compact(c.Domains)
	return c
}

// Has tells whether the tasks of a tasklist are counted, as a whole, by their groups or as of their domain.
func (c *Caps) Has(of Tasklist) bool {
	return c.counts(Queue{Tasklist: of}) || c.PerGroup[of] > 0 || c.Bounded[of.Domain]
}

// Tasklists tells whether a tasklist has a cap.
func (c *Caps) Tasklists() bool { return c != nil && len(c.Of)+len(c.PerGroup) > 0 }

// counts tells whether a queue is counted.
func (c *Caps) counts(q Queue) bool {
	switch {
	case q.Group != "":
		return c.PerGroup[q.Tasklist] > 0
	case q.Name == "":
		return c.Bounded[q.Domain]
	}
	_, wanted := c.Of[q.Tasklist]
	return wanted
}

// within tells whether all that c counts is counted by o.
func (c *Caps) within(o *Caps) bool {
	if c == o {
		return true
	}
	for l := range c.Of {
		if _, there := o.Of[l]; !there {
			return false
		}
	}
	for l := range c.PerGroup {
		if _, there := o.PerGroup[l]; !there {
			return false
		}
	}
	for domain := range c.Bounded {
		if !o.Bounded[domain] {
			return false
		}
	}
	return true
}

const (
	// spansMax bounds what is remembered of one tasklist in a lane: past it, neighbours become one. fewSpansMax is the same for
	// a group, and for a domain.
	spansMax    = 4096
	fewSpansMax = 64
	// groupsMax bounds the groups of all tasklists that are counted in a lane, and the domains: past it, half of them are forgotten.
	groupsMax = 4096
)

// Lane counts what is unread of one lane.
type Lane struct {
	of    *Caps
	to    uint64
	lists map[place]*list
	// groups counts the places of a group, and of a domain.
	groups int
}

// place is a queue in messages that are filed at one place: they are read by themselves where that is split off.
type place struct {
	Queue
	filed ids.Place
}

// tasklist tells whether it is one of a whole tasklist. There are few of these.
func (p place) tasklist() bool { return p.Name != "" && p.Group == "" }

// list is the unread tasks of a queue, as they lie in the log.
type list struct {
	spans []span
	Amount
}

// span is some tasks, the first of them in message seq.
type span struct {
	seq uint64
	Amount
}

// add counts more of a, or less.
func (a *Amount) add(of Amount, sign int64) {
	a.Tasks, a.Bytes = a.Tasks+sign*of.Tasks, a.Bytes+sign*of.Bytes
}

// NewLane counts what lies behind a sequence.
func NewLane(of *Caps, read uint64) *Lane {
	return &Lane{of: of, to: read, lists: make(map[place]*list)}
}

// Next is the first message that has not been counted, and To the last one that has.
func (l *Lane) Next() uint64 { return l.to + 1 }

// To is the last message that has been counted; 0 = none.
func (l *Lane) To() uint64 { return l.to }

// Add counts tasks of a message that is filed at a place, and lies behind those that were counted before: as of their tasklist, as of their group if
// they have one, and as of their domain.
func (l *Lane) Add(seq uint64, of Queue, filed ids.Place, some Amount) {
	if seq <= l.to || some.Tasks <= 0 {
		return
	}
	l.add(seq, place{Queue{Tasklist: of.Tasklist}, filed}, spansMax, some)
	if of.Group != "" {
		l.add(seq, place{of, filed}, fewSpansMax, some)
	}
	l.add(seq, place{Queue{Tasklist: Tasklist{Domain: of.Domain}}, filed}, fewSpansMax, some)
}

func (l *Lane) add(seq uint64, at place, spans int, some Amount) {
	if !l.of.counts(at.Queue) {
		return
	}
	q := l.lists[at]
	if q == nil {
		if !at.tasklist() {
			if l.groups >= groupsMax {
				l.forgetSmall()
			}
			l.groups++
		}
		q = &list{}
		l.lists[at] = q
	}
	q.add(some, 1)
	if n := len(q.spans); n > 0 && q.spans[n-1].seq == seq {
		q.spans[n-1].add(some, 1)
		return
	}
	if len(q.spans) >= spans {
		q.halve()
	}
	q.spans = append(q.spans, span{seq, some})
}

// forgetSmall forgets half of the groups and of the domains, of each domain in turn those with the fewest tasks: they are far from their cap.
func (l *Lane) forgetSmall() {
	var all []place
	for at := range l.lists {
		if !at.tasklist() {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(l.lists[b].Tasks, l.lists[a].Tasks) })
	inTurn(all, func(p place) string { return p.Domain })
	for _, at := range all[len(all)-len(all)/2:] {
		delete(l.lists, at)
		l.groups--
	}
}

// halve makes one span of two. Its tasks are forgotten with the first of them: too early rather than too late.
func (q *list) halve() {
	kept := q.spans[:0]
	for i, s := range q.spans {
		if i%2 == 0 {
			kept = append(kept, s)
		} else {
			kept[len(kept)-1].add(s.Amount, 1)
		}
	}
	q.spans = kept
}

// Counted tells that all messages up to a sequence have been added.
func (l *Lane) Counted(to uint64) { l.to = max(l.to, to) }

// Pass forgets what has been read meanwhile. read is up to where what is filed at a place is read.
func (l *Lane) Pass(read func(ids.Place) uint64) {
	for at, q := range l.lists {
		level, n := read(at.filed), 0
		for n < len(q.spans) && q.spans[n].seq <= level {
			q.add(q.spans[n].Amount, -1)
			n++
		}
		if q.spans = q.spans[n:]; len(q.spans) == 0 {
			delete(l.lists, at)
			if !at.tasklist() {
				l.groups--
			}
		}
	}
}

// Tasks is how many tasks of a queue have been counted and are not read.
func (l *Lane) Tasks(of Queue) (n int64) {
	for _, filed := range [...]ids.Place{"", ids.PlaceOf(of.Domain, ""), ids.PlaceOf(of.Domain, of.Name)} {
		if q := l.lists[place{of, filed}]; q != nil {
			n += q.Tasks
		}
	}
	return n
}

// ByGroup adds how many tasks of each group have been counted and are not read.
func (l *Lane) ByGroup(to map[Queue]int64) {
	if l.groups == 0 {
		return
	}
	for at, q := range l.lists {
		if at.Group != "" {
			to[at.Queue] += q.Tasks
		}
	}
}

// ByDomain adds what has been counted of each domain with a quota and is not read.
func (l *Lane) ByDomain(to map[string]Amount) {
	if l.groups == 0 {
		return
	}
	for at, q := range l.lists {
		if at.Name == "" {
			sum := to[at.Domain]
			sum.add(q.Amount, 1)
			to[at.Domain] = sum
		}
	}
}

// Covers tells whether all tasklists and domains of caps are counted.
func (l *Lane) Covers(caps *Caps) bool { return caps.within(l.of) }
