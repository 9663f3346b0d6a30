// Package fair is a queue in which domains take turns, by weight.
//
// Owns: the order in which what waits is taken: weighted fair queueing (Demers, Keshav and Shenker, 1989), in which each item
// costs what it weighs, and a domain with three turns is served three times as much. If one domain alone waits, it
// gets everything. All that domains share and wait for is taken from such a queue (I11, I14): submits on their way into the log, searches, looks
// at what is in memory, tasks on their way into the archive and the timer store.
//
// Never does: bound what waits, wait, or lock. On failure: nothing can fail.
package fair

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/shared/heap"
)

// Queue holds what waits. Domains are served in turn, by weight: however much
// others have waiting, before an item comes of each of them at most one item, which has waited longer,
// and as much as the item weighs, times as many as its turns. The items of a domain keep their order. The zero value is
// empty. It is not safe for concurrent use.
type Queue[T any] struct {
	// Turns is how many turns a domain has for each one of others, 1..100; nil = all have as many.
	Turns func(domain string) int
	// Share is how much one domain has of a cut at most, and one item at least; 0 = all of it.
	Share int

	lines map[string]*line[T]
	// heads are the lines, by when their first items are next.
	heads heap.Heap[*line[T]]
	// clock is the finish of the item served last. It counts in weight, by domain, in clockUnit.
	clock uint64
	// placed counts the heads that were placed: the tie-break.
	placed uint64
	// cuts counts the cuts.
	cuts uint64
	len  int
}

// clockUnit is how much of the clock one unit of weight is of a domain with one turn: the most turns divide it.
const clockUnit = 100

// line is what one domain has waiting; it exists while that is something.
type line[T any] struct {
	domain string
	items  []weighed[T]
	// finish is when the first item would be served, on the queue's clock, if all domains were
	// served at once and alike.
	finish, placed uint64
	// taken is the weight of its items in cut number cut.
	taken int
	cut   uint64
	// at is the line's place in the heap.
	at int
}

// before reports whether the first item of l is served before that of m.
func (l *line[T]) before(m *line[T]) bool {
	return l.finish < m.finish || l.finish == m.finish && l.placed < m.placed
}

type weighed[T any] struct {
	item   T
	weight int
}

// Add puts an item of a domain at the end of its line. Weight is 1 or more.
func (q *Queue[T]) Add(domain string, item T, weight int) {
	l := q.lines[domain]
	if l == nil {
		if q.lines == nil {
			q.lines, q.heads.Less = map[string]*line[T]{}, (*line[T]).before
			q.heads.Place = func(l *line[T]) *int { return &l.at }
		}
		l = &line[T]{domain: domain}
		q.lines[domain] = l
	}
	l.items = append(l.items, weighed[T]{item, weight})
	q.len++
	if len(l.items) == 1 {
		q.place(l)
		q.heads.Push(l)
	}
}

// Len is how many items wait.
func (q *Queue[T]) Len() int { return q.len }

// Remove takes out the first item of a domain for which is returns true, and reports whether there was one. The items behind it move up.
func (q *Queue[T]) Remove(domain string, is func(T) bool) bool {
	l := q.lines[domain]
	if l == nil {
		return false
	}
	i := slices.IndexFunc(l.items, func(w weighed[T]) bool { return is(w.item) })
	if i < 0 {
		return false
	}
	q.len--
	l.items = slices.Delete(l.items, i, i+1)
	if len(l.items) == 0 {
		q.heads.Remove(l)
		delete(q.lines, domain)
	}
	return true
}

// place gives the first item of l its time.
func (q *Queue[T]) place(l *line[T]) {
	q.placed++
	turns := 1
	if q.Turns != nil {
		turns = q.Turns(l.domain)
	}
	l.finish, l.placed = q.clock+uint64(l.items[0].weight*clockUnit/turns), q.placed
}

// Cut takes items off the queue, up to a weight in all, and one at least if there is any.
func (q *Queue[T]) Cut(weightMax int) (items []T) {
	q.cuts++
	var rest []*line[T] // of domains that have had their share
	for weight := 0; q.heads.Len() > 0; {
		l := q.heads.First()
		first := l.items[0]
		if !q.shares(l, first.weight) {
			rest = append(rest, q.heads.Pop())
			continue
		}
		if weight += first.weight; weight > weightMax && len(items) > 0 {
			break
		}
		items = append(items, first.item)
		l.taken += first.weight
		q.clock = max(q.clock, l.finish) // a line that has had its share is behind it in the next cut
		q.len--
		l.items[0] = weighed[T]{} // or the array would keep it alive
		if l.items = l.items[1:]; len(l.items) > 0 {
			q.place(l)
			q.heads.FixFirst()
			continue
		}
		q.heads.Pop()
		delete(q.lines, l.domain)
	}
	for _, l := range rest {
		q.heads.Push(l)
	}
	return items
}

// shares reports whether an item of l is within the share that its domain has of this cut.
func (q *Queue[T]) shares(l *line[T], weight int) bool {
	if l.cut != q.cuts {
		l.cut, l.taken = q.cuts, 0
	}
	return q.Share == 0 || l.taken == 0 || l.taken+weight <= q.Share
}
