package limit

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/heap"
)

// waiters are the tasklists that wait for a slot of a limit: in a line for each priority, by the most urgent of their triggers that do, first
// come, first served. The lines take turns by weight. So a slot that comes free costs a look at one tasklist, however many wait.
type waiters struct {
	all map[*List]*waiter
	// lines are by priority; nil = none has waited yet.
	lines []heap.Heap[*waiter]
	turn  table.Turn
	// lackSince is since when triggers lack slots, and got none; 0 = none does.
	lackSince time.Duration
	// strict counts those of which the most urgent priority goes first.
	strict int
	// came counts those that came.
	came uint64
}

// waiter is one tasklist that waits for slots of one limit.
type waiter struct {
	list     *List
	limit    *Limit
	priority int
	order    uint64
	since    time.Duration
	// tried: a call under way asks for its triggers, and it stands in no line.
	tried bool
	// strict: its tasklist is.
	strict bool
	// place is that in its line.
	place int
}

// wait has a tasklist wait for a slot, for a trigger of a priority.
func (l *List) wait(lim *Limit, priority int) {
	q := &lim.waiters
	w := q.all[l]
	switch {
	case w == nil:
		if q.all == nil {
			q.all, q.lines = map[*List]*waiter{}, make([]heap.Heap[*waiter], table.PriorityIdle+1)
			for i := range q.lines {
				q.lines[i].Less = func(a, b *waiter) bool { return a.order < b.order }
				q.lines[i].Place = func(w *waiter) *int { return &w.place }
			}
		}
		w = &waiter{list: l, limit: lim, since: l.domain.shard.now, strict: l.domain.shard.catalog.Strict(l.Domain, l.Name)}
		q.all[l] = w
		l.waits++
		q.countStrict(w, 1)
	case w.tried || w.priority <= priority:
		return
	default:
		q.lines[w.priority].Remove(w)
	}
	q.came++
	w.priority, w.order = priority, q.came
	q.lines[priority].Push(w)
	if !lim.waited {
		lim.waited = true
		l.domain.waited = append(l.domain.waited, lim)
	}
}

// back returns a waiter that was tried in vain to its place.
func (q *waiters) back(w *waiter) {
	if w != nil && w.tried && q.all[w.list] == w {
		w.tried = false
		q.lines[w.priority].Push(w)
	}
}

// leave forgets a waiter.
func (q *waiters) leave(w *waiter) {
	if q.all[w.list] != w {
		return
	}
	q.lines[w.priority].Remove(w)
	delete(q.all, w.list)
	w.list.waits--
	q.countStrict(w, -1)
}

func (q *waiters) countStrict(w *waiter, n int) {
	if w.strict {
		q.strict += n
	}
}

// markWaiters has the tasklists looked at that wait for a limit that is no more.
func (l *Limit) markWaiters() {
	for w := l.waiters.first(); w != nil; w = l.waiters.first() {
		l.waiters.leave(w)
		w.list.Tasks.Look()
	}
	if c := l.Domain.Call; c != nil {
		for _, w := range c.Tried {
			if w.limit == l {
				l.waiters.leave(w)
			}
		}
	}
}

func (q *waiters) any() bool { return len(q.all) > 0 }

// first is the one whose turn it is, or nil.
func (q *waiters) first() *waiter {
	w, _ := q.next()
	return w
}

// next is the first one, and the turn behind it.
func (q *waiters) next() (*waiter, table.Turn) {
	if len(q.all) == q.strict { // none, or they are partitions of strict tasklists
		return q.mostUrgent(), q.turn
	}
	priority, after := q.turn.Next(func(priority int) bool { return q.lines[priority].Len() > 0 })
	if priority == 0 {
		return q.mostUrgent(), after
	}
	return q.lines[priority].First(), after
}

// lineFor is for how long a shard of which triggers of priority 2 wait stands behind more urgent ones in the line of a limit before it counts
// as urgent itself; those of the others wait for as much longer with each priority. No shard of a line knows what others have: without this
// the last would wait while urgent ones come.
const lineFor = 500 * time.Millisecond

// linePriority is that by which the shard stands in the line of shards, its most urgent trigger there having another one.
func (q *waiters) linePriority(priority int, now time.Duration) int {
	later, strict := time.Duration(priority-table.PriorityFirst), q.strict > 0 && len(q.all) == q.strict
	if !strict && later > 0 && priority <= table.PriorityLast && q.lackSince > 0 && now-q.lackSince >= lineFor*later {
		return table.PriorityFirst
	}
	return priority
}

// mostUrgent is one of the most urgent priority that waits, or nil.
func (q *waiters) mostUrgent() *waiter {
	for i := range q.lines {
		if q.lines[i].Len() > 0 {
			return q.lines[i].First()
		}
	}
	return nil
}

// others tells whether another tasklist waits, be it tried just now.
func (q *waiters) others(l *List) bool {
	return len(q.all) > 1 || len(q.all) == 1 && q.all[l] == nil
}

// before tells whether a tasklist has to wait for others.
func (q *waiters) before(l *List) bool {
	w := q.first()
	return w != nil && w.list != l
}

// InLine are the tasklists that stand in the line of a limit, those of the most urgent priority first.
func (l *Limit) InLine() iter.Seq[*List] {
	return func(yield func(*List) bool) {
		for i := range l.waiters.lines {
			for _, w := range slices.SortedFunc(slices.Values(l.waiters.lines[i].All()), func(a, b *waiter) int { return cmp.Compare(a.order, b.order) }) {
				if !yield(w.list) {
					return
				}
			}
		}
	}
}

// KeepPlace has a tasklist that was tried in vain keep its place.
func (l *Limit) KeepPlace(of *List) { l.waiters.back(l.waiters.all[of]) }
