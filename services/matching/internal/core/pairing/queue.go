package pairing

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/shared/heap"
)

// Queue is the polls of a tasklist that wait and have room, first come first served. They stand in lines by
// the types that they accept: a trigger that none of many equal polls accepts costs one look.
type Queue[L, G any] struct {
	byKey map[lineKey]*Line[L, G]
	lines []*Line[L, G]
	n     int
	// types counts the lines that name a type, all those that accept any; not lines of polls that stay where they are.
	types map[string]int
	all   int
	// alive counts the polls that are not answered, waiting or not. sets counts them by the types that they accept, takers how many
	// different sets name a type.
	alive        int
	sets, takers map[string]int
	domain       *Domain
	// overdue are polls whose time is over, and that only wait for the tables to be asked once more.
	overdue []*Poll[L, G]
	// taskBytes is the size of a task in an answer, on average; 0 = none was seen.
	taskBytes int
}

// Domain counts the polls of the domain of a name that are not answered, and the types that they name in their different sets.
type Domain struct {
	Name         string
	alive, named int
}

// typesNamedMax is how many types the polls of a domain name, those that name the same counted once per tasklist: each costs a look
// into the index whenever the tasklist is looked at.
const typesNamedMax = 16_384

// NewQueue returns the queue of a tasklist of a domain.
func NewQueue[L, G any](d *Domain) Queue[L, G] {
	return Queue[L, G]{domain: d, sets: map[string]int{}, takers: map[string]int{}}
}

// Join counts a poll that is not answered; false if the polls of its domain name too many types already.
func (q *Queue[L, G]) Join(p *Poll[L, G]) bool {
	if q.sets[p.key] == 0 {
		if q.domain.named+len(p.Types) > typesNamedMax {
			return false
		}
		q.domain.named += len(p.Types)
		for _, typ := range p.Types {
			q.takers[typ]++
		}
	}
	p.queue = q
	q.sets[p.key]++
	q.alive++
	q.domain.alive++
	return true
}

// Leave counts a poll that is answered.
func (q *Queue[L, G]) Leave(p *Poll[L, G]) {
	q.alive--
	q.domain.alive--
	if q.sets[p.key]--; q.sets[p.key] > 0 {
		return
	}
	delete(q.sets, p.key)
	q.domain.named -= len(p.Types)
	for _, typ := range p.Types {
		if q.takers[typ]--; q.takers[typ] == 0 {
			delete(q.takers, typ)
		}
	}
}

// Len counts the polls that wait here.
func (q *Queue[L, G]) Len() int { return q.n }

// Alive counts the polls that are not answered.
func (q *Queue[L, G]) Alive() int { return q.alive }

// Names reports whether a poll accepts a type, of those that are not answered.
func (q *Queue[L, G]) Names(typ string) bool { return q.sets[""] > 0 || q.takers[typ] > 0 }

// WaitsFor reports whether a poll waits here that accepts a type.
func (q *Queue[L, G]) WaitsFor(typ string) bool {
	return slices.ContainsFunc(q.lines, func(l *Line[L, G]) bool { return l.first.Accepts(typ) })
}

// Lines are those of the polls that wait.
func (q *Queue[L, G]) Lines() []*Line[L, G] { return q.lines }

// Weigh notes what the tasks of one answer weighed. It follows growth at once and forgets slowly: an answer that does not fit costs
// more than a small one.
func (q *Queue[L, G]) Weigh(bytes, tasks int) {
	mean, weight := bytes/tasks, q.weight()
	if mean <= weight {
		mean = weight + (mean-weight)/8
	}
	q.taskBytes = mean
}

func (q *Queue[L, G]) weight() int {
	if q.taskBytes == 0 {
		return taskBytesGuess
	}
	return q.taskBytes
}

// lineKey names a line: what its polls accept, and whether they stay in their partition.
type lineKey struct {
	types string
	fixed bool
}

func (p *Poll[L, G]) lineKey() lineKey { return lineKey{p.key, p.ID == 0} }

// Line is those that accept the same types, by their order. It is in its queue's lines at index at.
type Line[L, G any] struct {
	at          int
	first, last *Poll[L, G]
}

// First is the first poll of a line, nil if it is empty.
func (l *Line[L, G]) First() *Poll[L, G] { return l.first }

// Last is the last poll of a line, nil if it is empty.
func (l *Line[L, G]) Last() *Poll[L, G] { return l.last }

// Add files p by its order.
func (q *Queue[L, G]) Add(p *Poll[L, G]) {
	if p.line != nil {
		return
	}
	line := q.byKey[p.lineKey()]
	if line == nil {
		if q.byKey == nil {
			q.byKey = map[lineKey]*Line[L, G]{}
		}
		line = &Line[L, G]{at: len(q.lines)}
		q.byKey[p.lineKey()], q.lines = line, append(q.lines, line)
		q.count(p, 1)
	}
	line.add(p)
	q.n++
}

func (l *Line[L, G]) add(p *Poll[L, G]) {
	after := l.last
	if after != nil && after.order > p.order { // it comes back: its place is in front
		after = nil
		for at := l.first; at.order < p.order; at = at.next {
			after = at
		}
	}
	p.line, p.prev = l, after
	if after == nil {
		p.next, l.first = l.first, p
	} else {
		p.next, after.next = after.next, p
	}
	if p.next == nil {
		l.last = p
	} else {
		p.next.prev = p
	}
}

// Remove takes p out, and its line if it was the last one there.
func (q *Queue[L, G]) Remove(p *Poll[L, G]) {
	l := p.line
	if l == nil {
		return
	}
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		l.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		l.last = p.prev
	}
	p.line, p.prev, p.next = nil, nil, nil
	q.n--
	if l.first == nil {
		q.drop(l, p)
		q.count(p, -1)
	}
}

// count counts the line of p.
func (q *Queue[L, G]) count(p *Poll[L, G], n int) {
	switch {
	case p.ID == 0:
	case len(p.Types) == 0:
		q.all += n
	default:
		if q.types == nil {
			q.types = map[string]int{}
		}
		for _, typ := range p.Types {
			if q.types[typ] += n; q.types[typ] == 0 {
				delete(q.types, typ)
			}
		}
	}
}

// Takes tells whether a poll waits for a type, of those that may travel.
func (q *Queue[L, G]) Takes(typ string) bool { return q.all > 0 || q.types[typ] > 0 }

func (q *Queue[L, G]) drop(l *Line[L, G], p *Poll[L, G]) {
	delete(q.byKey, p.lineKey())
	last := len(q.lines) - 1
	q.lines[l.at] = q.lines[last]
	q.lines[l.at].at = l.at
	q.lines[last] = nil
	q.lines = q.lines[:last]
}

// Taker is the first poll that takes a type, and how many.
func (q *Queue[L, G]) Taker(typ string, answerBytesMax int) (*Poll[L, G], int) {
	var found *Poll[L, G]
	most := 0
	for _, l := range q.lines {
		if !l.first.Accepts(typ) {
			continue
		}
		for p := l.first; p != nil && (found == nil || p.order < found.order); p = p.next {
			if room := p.Room(answerBytesMax); room > 0 {
				found, most = p, room
				break
			}
		}
	}
	return found, most
}

// Each calls f with the polls in their order. If f returns false it gets no more of that line.
func (q *Queue[L, G]) Each(f func(p *Poll[L, G]) bool) {
	heads := heap.Heap[*Poll[L, G]]{Less: func(a, b *Poll[L, G]) bool { return a.order < b.order }}
	for _, l := range q.lines {
		heads.Push(l.first)
	}
	for heads.Len() > 0 {
		p := heads.Pop()
		if f(p) && p.next != nil {
			heads.Push(p.next)
		}
	}
}

// EachOverdue calls f with the polls that only wait for the tables to be asked once more, and forgets them.
func (q *Queue[L, G]) EachOverdue(f func(p *Poll[L, G])) {
	for _, p := range q.overdue {
		f(p)
	}
	clear(q.overdue)
	q.overdue = q.overdue[:0]
}

// Overdue notes that the time of a poll is over, and that it only waits for the tables to be asked once more.
func (p *Poll[L, G]) Overdue() { p.queue.overdue = append(p.queue.overdue, p) }

// Domain is the name of the domain of a poll that is not answered.
func (p *Poll[L, G]) Domain() string { return p.queue.domain.Name }

// Weigh notes what the tasks of its answer weighed.
func (p *Poll[L, G]) Weigh(bytes, tasks int) { p.queue.Weigh(bytes, tasks) }

// EnterLine puts a poll into its place in the line of its tasklist.
func (p *Poll[L, G]) EnterLine() { p.queue.Add(p) }

// LeaveTasklist notes that a poll waits for nothing of its tasklist any more.
func (p *Poll[L, G]) LeaveTasklist() {
	p.LeaveLine()
	p.queue.Leave(p)
}

// LeaveLine takes a poll out of its line: it waits for its grabs.
func (p *Poll[L, G]) LeaveLine() { p.queue.Remove(p) }
