// Package backlog counts the tasks of some tasklists that lie in a partition's log and are not read yet.
//
// Owns: of each lane that is read up to its window, how many tasks of each of these tasklists lie behind, and of their groups where
// these have a cap. Somebody else reads the messages, from Next on, and tells what they hold.
//
// Never does: decide anything of a task. The counts are a hint for frontends, which refuse submits above a cap.
//
// On failure: what has not been counted yet is missing, so a count is too low, never too high.
package backlog

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Tasklist is one whose tasks are counted.
type Tasklist struct{ Domain, Name string }

// Queue is a tasklist, or what it has of one group.
type Queue struct {
	Tasklist
	// Group is empty where it is the whole tasklist.
	Group string
}

// Caps are the tasklists with a cap on their queue, by its size. They are not changed once they are made.
type Caps struct {
	Of map[Tasklist]int64
	// PerGroup are the caps of each group of a tasklist.
	PerGroup map[Tasklist]int64
	// Domains are theirs, sorted.
	Domains []string
}

// NewCaps makes them; nil where there are none.
func NewCaps(of, perGroup map[Tasklist]int64) *Caps {
	if len(of)+len(perGroup) == 0 {
		return nil
	}
	c := &Caps{Of: of, PerGroup: perGroup}
	for _, all := range []map[Tasklist]int64{of, perGroup} {
		for l := range all {
			c.Domains = append(c.Domains, l.Domain)
		}
	}
	slices.Sort(c.Domains)
	c.Domains = slices.Compact(c.Domains)
	return c
}

// Has tells whether the tasks of a tasklist are counted, as a whole or by their groups.
func (c *Caps) Has(of Tasklist) bool { return c.counts(Queue{Tasklist: of}) || c.PerGroup[of] > 0 }

// counts tells whether a queue is counted.
func (c *Caps) counts(q Queue) bool {
	if q.Group != "" {
		return c.PerGroup[q.Tasklist] > 0
	}
	_, wanted := c.Of[q.Tasklist]
	return wanted
}

// within tells whether all that c counts is counted by o.
func (c *Caps) within(o *Caps) bool {
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
	return true
}

const (
	// spansMax bounds what is remembered of one tasklist in a lane: past it, neighbours become one. groupSpansMax is the same for
	// a group.
	spansMax      = 4096
	groupSpansMax = 64
	// groupsMax bounds the groups of all tasklists that are counted in a lane: past it, half of them are forgotten.
	groupsMax = 4096
)

// Lane counts what is unread of one lane.
type Lane struct {
	of    *Caps
	to    uint64
	lists map[place]*list
	// groups counts the places of a group.
	groups int
}

// place is a queue in messages that are filed at one place: they are read by themselves where that is split off.
type place struct {
	Queue
	filed ids.Place
}

// list is the unread tasks of a queue, as they lie in the log.
type list struct {
	spans []span
	tasks int64
}

// span is some tasks, the first of them in message seq.
type span struct {
	seq   uint64
	tasks int64
}

// NewLane counts what lies behind a sequence.
func NewLane(of *Caps, read uint64) *Lane {
	return &Lane{of: of, to: read, lists: make(map[place]*list)}
}

// Next is the first message that has not been counted, and To the last one that has.
func (l *Lane) Next() uint64 { return l.to + 1 }

// To is the last message that has been counted; 0 = none.
func (l *Lane) To() uint64 { return l.to }

// Add counts tasks of a message that is filed at a place, and lies behind those that were counted before: as of their tasklist, and as of their
// group if they have one.
func (l *Lane) Add(seq uint64, of Queue, filed ids.Place, tasks int64) {
	if seq <= l.to || tasks <= 0 {
		return
	}
	l.add(seq, place{Queue{Tasklist: of.Tasklist}, filed}, spansMax, tasks)
	if of.Group != "" {
		l.add(seq, place{of, filed}, groupSpansMax, tasks)
	}
}

func (l *Lane) add(seq uint64, at place, spans int, tasks int64) {
	if !l.of.counts(at.Queue) {
		return
	}
	q := l.lists[at]
	if q == nil {
		if at.Group != "" {
			if l.groups >= groupsMax {
				l.forgetSmall()
			}
			l.groups++
		}
		q = &list{}
		l.lists[at] = q
	}
	q.tasks += tasks
	if n := len(q.spans); n > 0 && q.spans[n-1].seq == seq {
		q.spans[n-1].tasks += tasks
		return
	}
	if len(q.spans) >= spans {
		q.halve()
	}
	q.spans = append(q.spans, span{seq, tasks})
}

// forgetSmall forgets half of the groups, of each domain in turn those with the fewest tasks: they are far from their cap.
func (l *Lane) forgetSmall() {
	var all []place
	for at := range l.lists {
		if at.Group != "" {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(l.lists[b].tasks, l.lists[a].tasks) })
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
			kept[len(kept)-1].tasks += s.tasks
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
			q.tasks -= q.spans[n].tasks
			n++
		}
		if q.spans = q.spans[n:]; len(q.spans) == 0 {
			delete(l.lists, at)
			if at.Group != "" {
				l.groups--
			}
		}
	}
}

// Tasks is how many tasks of a queue have been counted and are not read.
func (l *Lane) Tasks(of Queue) (n int64) {
	for _, filed := range [...]ids.Place{"", ids.PlaceOf(of.Domain, ""), ids.PlaceOf(of.Domain, of.Name)} {
		if q := l.lists[place{of, filed}]; q != nil {
			n += q.tasks
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
			to[at.Queue] += q.tasks
		}
	}
}

// Covers tells whether all tasklists of caps are counted.
func (l *Lane) Covers(caps *Caps) bool { return caps.within(l.of) }
