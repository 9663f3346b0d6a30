package question

import (
	"slices"
	"time"
)

const (
	// RetryEvery is when a question is asked again that a partition did not answer.
	RetryEvery = 250 * time.Millisecond
	// A question that comes up again while it is asked waits for AgainRest times as long as that took, and AgainRestMax at most: all
	// triggers of a domain are sent again, for one that pauses and resumes its groups over and over, and history has those of others to
	// see to (I14).
	AgainRest    = 3
	AgainRestMax = 5 * time.Second
)

// Kind tells the questions apart.
type Kind uint8

// Question is one to a history partition, with what the asker wants to remember of it.
type Question[T any] struct {
	// ID names it; it is set by the queue.
	ID        uint64
	Kind      Kind
	Partition int
	Domain    string
	About     T
	// AskedAt is when it was asked, dueAt when it may be asked again.
	AskedAt, dueAt time.Duration
	// again: it came up again while it was under way.
	again bool
}

// place is a domain in a partition.
type place struct {
	kind      Kind
	partition int
	domain    string
}

func (q *Question[T]) place() place { return place{q.Kind, q.Partition, q.Domain} }

// Queue holds questions. Use New.
type Queue[T any] struct {
	last uint64
	// open are those under way by ID, waiting those to be asked.
	open    map[uint64]*Question[T]
	waiting []*Question[T]
	// once are those of which there is one of a kind, partition and domain. alone are places of which one is under way, of the kind single.
	once   map[place]*Question[T]
	alone  map[place]bool
	single Kind
}

// New returns a queue without questions. Of the kind single one is under way at a time for each partition and domain.
func New[T any](single Kind) Queue[T] {
	return Queue[T]{open: map[uint64]*Question[T]{}, once: map[place]*Question[T]{}, alone: map[place]bool{}, single: single}
}

// Len counts the questions that are not answered.
func (a *Queue[T]) Len() int { return len(a.open) + len(a.waiting) }

// Add has a question asked.
func (a *Queue[T]) Add(q Question[T]) {
	a.last++
	q.ID = a.last
	a.waiting = append(a.waiting, &q)
}

// AddOnce has a question asked, unless the same one is not answered yet: then it is asked again, since what is under way may have
// come too early.
func (a *Queue[T]) AddOnce(q Question[T]) {
	at := q.place()
	if same := a.once[at]; same != nil {
		same.again = true
		return
	}
	a.Add(q)
	a.once[at] = a.waiting[len(a.waiting)-1]
}

// Due takes out the questions that are to be asked now. may is asked about each that is due: it may drop it, or have it wait.
func (a *Queue[T]) Due(now time.Duration, may func(q *Question[T]) (drop, ready bool)) (due []*Question[T]) {
	a.waiting = slices.DeleteFunc(a.waiting, func(q *Question[T]) bool {
		drop, ready := may(q)
		at, single := q.place(), q.Kind == a.single
		switch {
		case drop:
			return true
		case !ready || now < q.dueAt || single && a.alone[at]:
			return false
		case single:
			a.alone[at] = true
		}
		q.AskedAt, q.again = now, false
		a.open[q.ID] = q
		due = append(due, q)
		return true
	})
	return due
}

// Open is the question of an ID that is under way, or nil.
func (a *Queue[T]) Open(id uint64) *Question[T] { return a.open[id] }

// End ends a question that is under way. It reports false if it is asked again: it failed, or came up again meanwhile.
func (a *Queue[T]) End(q *Question[T], failed bool, now time.Duration) bool {
	delete(a.open, q.ID)
	if q.Kind == a.single {
		delete(a.alone, q.place())
	}
	switch {
	case failed:
		q.dueAt = now + RetryEvery
	case q.again:
		q.dueAt = now + min(AgainRest*(now-q.AskedAt), AgainRestMax)
	default:
		if a.once[q.place()] == q {
			delete(a.once, q.place())
		}
		return true
	}
	a.waiting = append(a.waiting, q)
	return false
}
