package schedules

import (
	"github.com/yardmaster-io/yardmaster/shared/fair"
	"github.com/yardmaster-io/yardmaster/shared/heap"
)

// agenda says which schedules are to be decided, and when. The decisions of domains take turns. It is not safe for concurrent use.
type agenda struct {
	entries map[Name]*entry
	times   heap.Heap[*entry]
	due     fair.Queue[*entry]
}

type entry struct {
	name Name
	// seq is that of its newest message.
	seq  uint64
	at   int64
	slot int
	// queued: it is due. deciding: it is being decided. again: it has changed since that began.
	queued, deciding, again bool
}

func newAgenda() *agenda {
	a := &agenda{entries: map[Name]*entry{}}
	a.times.Less = func(x, y *entry) bool { return x.at < y.at }
	a.times.Place = func(e *entry) *int { return &e.slot }
	return a
}

// stored takes in that a schedule was stored, and is to be decided at a time; ok is false if it is not by itself.
func (a *agenda) stored(n Name, seq uint64, atMS int64, ok bool) {
	e := a.entries[n]
	if e == nil {
		e = &entry{name: n}
		a.entries[n] = e
	}
	if seq <= e.seq { // its keeper has stored it
		return
	}
	e.seq, e.again = seq, e.deciding
	a.wake(e, atMS, ok)
}

func (a *agenda) wake(e *entry, atMS int64, ok bool) {
	if e.queued || e.deciding {
		return
	}
	a.times.Remove(e)
	if ok {
		e.at = atMS
		a.times.Push(e)
	}
}

// removed takes in that a schedule was deleted.
func (a *agenda) removed(n Name) {
	if e := a.entries[n]; e != nil {
		a.times.Remove(e)
		a.due.Remove(n.Domain, func(d *entry) bool { return d == e })
		delete(a.entries, n)
	}
}

// take takes out up to so many schedules that are due. Each is to be decided, and then decided or absent is called.
func (a *agenda) take(nowMS int64, most int) (all []*entry) {
	for a.times.Len() > 0 && a.times.First().at <= nowMS {
		e := a.times.Pop()
		e.queued = true
		a.due.Add(e.name.Domain, e, 1)
	}
	for _, e := range a.due.Cut(most) {
		e.queued, e.deciding, e.again = false, true, false
		all = append(all, e)
	}
	return all
}

// decided ends a decision of a schedule as it was stored at seq. It is decided again at a time, or at once, if it has changed meanwhile. The
// decision of a schedule that was deleted meanwhile counts for nothing, also if there is another one of its name.
func (a *agenda) decided(e *entry, seq uint64, nowMS, atMS int64, ok bool) {
	if a.entries[e.name] != e {
		return
	}
	e.deciding = false
	if e.again && e.seq > seq {
		atMS, ok = nowMS, true
	}
	e.seq = max(e.seq, seq)
	a.wake(e, atMS, ok)
}

// absent ends a decision that found no schedule. If one was stored meanwhile, it is decided at once.
func (a *agenda) absent(e *entry, nowMS int64) {
	switch {
	case a.entries[e.name] != e:
	case e.again:
		a.decided(e, 0, nowMS, 0, false)
	default:
		a.removed(e.name)
	}
}

// next is when the next schedule is due; ok is false if none is.
func (a *agenda) next() (atMS int64, ok bool) {
	switch {
	case a.due.Len() > 0:
		return 0, true
	case a.times.Len() > 0:
		return a.times.First().at, true
	}
	return 0, false
}
