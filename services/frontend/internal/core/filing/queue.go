// Package filing says in which order the submits of a partition are taken, and which messages of its
// log they become.
//
// Owns: the queue of what waits for a partition, the turns of its domains, the cutting of a flush
// into messages, and the account of how much may still be filed without regard to priority.
//
// Never does: I/O, or bounding what waits; the caller admits. It does not know tasks: an item is a
// whole request, which is never divided (I2).
//
// On failure: nothing can fail. A message costs the log a sync to disk whatever it holds, so requests
// share one; but an urgent task must not wait on disk behind others (I7), and a domain with many
// tasks gets a subject to itself, where a reader can leave them aside (I11).
package filing

import "github.com/yardmaster-io/yardmaster/shared/heap"

// Queue holds what waits for one partition. Domains are served in turn, by weight: however much
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
		}
		l = &line[T]{domain: domain}
		q.lines[domain] = l
	}
	l.items = append(l.items, weighed[T]{item, weight})
	if len(l.items) == 1 {
		q.place(l)
		q.heads.Push(l)
	}
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
		l.items[0] = weighed[T]{}        // or the array would keep it alive
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
