// Package turns decides which tasklist of a worker polls next, and for how many tasks.
//
// Owns: how the free slots of a worker are shared among its tasklists. Each has one poll at a time, and a poll holds as many slots as it may return
// tasks. Tasklists that have work get tasks in the ratio of their weights, by stride scheduling. Tasklists without work hold one slot each. If
// slots are short and these are more than an eighth of all, they poll in turn for Length each, so that together they use an eighth.
//
// Never does: polling, waiting or reading a clock. It counts no slots: its caller says how many are free.
//
// On failure: a poll that fails got no tasks.
package turns

import (
	"slices"
	"time"
)

const (
	// Length is how long a poll without an answer may hold slots that another tasklist wants. After it the tasklist counts as one without work.
	Length = 100 * time.Millisecond
	// idlePart is the part of the slots that tasklists without work use if slots are short.
	idlePart = 8
	// shortFor is for how long slots are short after a tasklist with work has waited for one.
	shortFor = time.Second
)

// Turns are those of one worker. It is not safe for concurrent use.
type Turns struct {
	slots, batch int
	lists        []*list
	// clock is the pass of the tasklist with work that polled last: one without work begins there when it has work again.
	clock float64
	// queued numbers the tasklists that join the line.
	queued uint64
	// lacks: the tasklist that is next finds too few slots, waits: one with work does. shortUntil is until when slots are short, as long as a
	// tasklist has work.
	lacks, waits bool
	shortUntil   time.Time
	// probeAt is when the next tasklist without work may poll while slots are short.
	probeAt time.Time
}

type list struct {
	weight float64
	// pass is how many tasks it was given, divided by its weight: of those with work the one with the least is next.
	pass float64
	// works: its last poll got tasks. ask is how many its next poll asks for.
	works bool
	ask   int
	// queued is its place in the line; 0 = it does not wait for slots.
	queued uint64
	// poll is its poll under way, if its Tasks are not 0.
	poll      Turn
	since     time.Time
	withdrawn bool
}

// Turn is a poll of a tasklist.
type Turn struct {
	List, Tasks int
	// Short: it may wait no longer than Length.
	Short bool
}

// New makes turns of a worker with so many slots, whose polls ask for batch tasks at most. The tasklists are numbered from 0.
func New(slots, batch int, weights []int) *Turns {
	t := &Turns{slots: slots, batch: batch, lists: make([]*list, len(weights))}
	for i, w := range weights {
		t.lists[i] = &list{weight: float64(w), ask: 1}
	}
	return t
}

// Want has a tasklist without a poll wait for its turn.
func (t *Turns) Want(i int) {
	t.queued++
	t.lists[i].queued = t.queued
}

// Next begins the next poll, if there is one for which enough slots are free.
func (t *Turns) Next(now time.Time, free int) (Turn, bool) {
	if t.waits {
		t.shortUntil = now.Add(shortFor)
	}
	busy, idle := t.first()
	room := free - t.kept()
	t.waits = busy >= 0 && room <= 0
	if t.lacks = t.waits || idle >= 0 && free <= 0; free <= 0 {
		return Turn{}, false
	}
	short := now.Before(t.shortUntil) && slices.ContainsFunc(t.lists, func(l *list) bool { return l.hasWork(now) })
	switch {
	case idle >= 0 && (!short || t.roomy() || !now.Before(t.probeAt)):
		if short {
			t.probeAt = now.Add(Length * idlePart / time.Duration(t.slots))
		}
		return t.begin(Turn{List: idle, Tasks: 1, Short: !t.roomy() && (short || free == 1 && t.othersWait(idle))}, now), true
	case busy >= 0 && room > 0 && !t.ahead(busy, now):
		n, shared := t.share(busy, now)
		n = min(n, t.lists[busy].ask, room)
		return t.begin(Turn{List: busy, Tasks: n, Short: short && shared || free == n && t.othersWait(busy)}, now), true
	}
	return Turn{}, false
}

// first are who is next of those that wait: of the tasklists with work the one with the least pass, of the others the one that came first; -1 = none.
func (t *Turns) first() (busy, idle int) {
	busy, idle = -1, -1
	for i, l := range t.lists {
		switch {
		case l.queued == 0:
		case !l.works:
			if idle < 0 || l.queued < t.lists[idle].queued {
				idle = i
			}
		case busy < 0 || l.pass < t.lists[busy].pass || l.pass == t.lists[busy].pass && l.queued < t.lists[busy].queued:
			busy = i
		}
	}
	return busy, idle
}

// begin notes that a poll begins. Its tasks count at once, so that polls under way do not exceed the ratio.
func (t *Turns) begin(turn Turn, now time.Time) Turn {
	l := t.lists[turn.List]
	if l.works {
		t.clock = max(t.clock, l.pass)
	} else {
		l.pass = max(l.pass, t.clock)
	}
	l.pass += float64(turn.Tasks) / l.weight
	l.queued, l.poll, l.since, l.withdrawn = 0, turn, now, false
	return turn
}

// Done ends a poll that got so many tasks. It reports whether the poll was withdrawn.
func (t *Turns) Done(i, got int) (withdrawn bool) {
	l := t.lists[i]
	asked := l.poll.Tasks
	l.pass -= float64(asked-got) / l.weight
	if l.works = got > 0; got >= asked {
		l.ask = min(2*asked, t.batch)
	} else {
		l.ask = max(got, 1)
	}
	l.poll = Turn{}
	return l.withdrawn
}

// hasWork reports whether a tasklist has work, as far as is known: its last poll got tasks, and the one under way is not without an answer for long.
func (l *list) hasWork(now time.Time) bool {
	return l.works && (l.poll.Tasks == 0 || now.Sub(l.since) < Length)
}

// ahead reports whether a tasklist got more than another one that has work.
func (t *Turns) ahead(i int, now time.Time) bool {
	return slices.ContainsFunc(t.lists, func(l *list) bool { return l.hasWork(now) && l.pass < t.lists[i].pass })
}

// kept is how many slots are kept for tasklists without work whose next poll has not begun.
func (t *Turns) kept() (n int) {
	if !t.roomy() {
		return 0
	}
	for _, l := range t.lists {
		if !l.works && l.poll.Tasks == 0 {
			n++
		}
	}
	return n
}

// share is a tasklist's share of the slots among those that have work, at least 1. shared: there are others.
func (t *Turns) share(i int, now time.Time) (n int, shared bool) {
	sum := t.lists[i].weight
	for j, l := range t.lists {
		if j != i && l.hasWork(now) {
			sum, shared = sum+l.weight, true
		}
	}
	return max(1, int(float64(t.slots)*t.lists[i].weight/sum)), shared
}

// roomy reports whether each tasklist without work may hold a slot, though slots are short.
func (t *Turns) roomy() bool {
	n := 0
	for _, l := range t.lists {
		if !l.works {
			n++
		}
	}
	return n*idlePart <= t.slots
}

// othersWait reports whether a tasklist waits for its turn besides i.
func (t *Turns) othersWait(i int) bool {
	for j, l := range t.lists {
		if j != i && l.queued > 0 {
			return true
		}
	}
	return false
}

// Withdraw returns a tasklist whose poll is to end, since it holds slots without an answer, and Next found too few for another one.
func (t *Turns) Withdraw(now time.Time) (i int, ok bool) {
	if !t.lacks {
		return 0, false
	}
	oldest, roomy := -1, t.roomy()
	for i, l := range t.lists {
		switch {
		case l.poll.Tasks == 0:
		case l.withdrawn:
			return 0, false // it frees slots soon
		case l.poll.Short, now.Sub(l.since) < Length, l.poll.Tasks == 1 && roomy:
		case oldest < 0 || l.since.Before(t.lists[oldest].since):
			oldest = i
		}
	}
	if oldest < 0 {
		return 0, false
	}
	t.lists[oldest].withdrawn = true
	return oldest, true
}

// Wake is when to ask again though nothing has changed; zero = never.
func (t *Turns) Wake(now time.Time) (wake time.Time) {
	if !t.othersWait(-1) {
		return wake
	}
	sooner := func(at time.Time) {
		if at.After(now) && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	sooner(t.probeAt)
	for _, l := range t.lists {
		if l.poll.Tasks > 0 {
			sooner(l.since.Add(Length))
		}
	}
	return wake
}
