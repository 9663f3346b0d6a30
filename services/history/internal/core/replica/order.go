package replica

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// orderKey names the tasks that run one at a time.
type orderKey struct{ domain, key string }

// orderLine is the tasks of an order key in memory, by their place in the log.
type orderLine struct {
	key    orderKey
	places []orderPlace
	// gone counts the places whose task has ended.
	gone int
	// alone is where places begins: most lines are short.
	alone [1]orderPlace
}

// seat is what an entry knows of its line.
type seat struct {
	// line is the one that it is in; nil = it has ended, or another entry has its place.
	line *orderLine
	// turnAt is when its owner knew that it is its turn, Unix ms; 0 = it waits for that.
	turnAt int64
}

// orderPlace is the place of one task; e is nil if it has ended.
type orderPlace struct {
	seq   uint64
	index uint32
	// id tells two tasks apart of one index: an owner that could not read a task of the message counted less.
	id ids.TaskID
	e  *Entry
}

func (p orderPlace) compare(o orderPlace) int {
	return cmp.Or(cmp.Compare(p.seq, o.seq), cmp.Compare(p.index, o.index), bytes.Compare(p.id[:], o.id[:]))
}

func placeOf(e *Entry) orderPlace {
	return orderPlace{e.Position.Seq(), e.Order().Index, e.ID, e}
}

func orderKeyOf(e *Entry) orderKey { return orderKey{e.Domain, e.Order().Key} }

// enterLine takes e into the line of its order key. They are read in the order of their places, but for carried ones.
func (r *Replica) enterLine(e *Entry) {
	if e.Order() == nil || e.State.Finished() {
		return
	}
	if r.keys == nil {
		r.keys = make(map[orderKey]*orderLine)
	}
	key := orderKeyOf(e)
	l := r.keys[key]
	if l == nil {
		l = &orderLine{key: key}
		l.places = l.alone[:0]
		r.keys[key] = l
	}
	if e.seat == nil {
		e.seat = &seat{}
	}
	at, found := l.find(e)
	switch {
	case !found:
		l.places = slices.Insert(l.places, at, placeOf(e))
		e.seat.line = l
		if len(l.places) > 1 { // they lie elsewhere now, and what is left here would keep a task that has ended
			l.alone[0].e = nil
		}
	case l.places[at].e == nil:
		l.places[at].e = e
		l.gone--
		e.seat.line = l
	}
}

// line is the line that e is in; nil = none.
func (e *Entry) line() *orderLine {
	if e.seat == nil {
		return nil
	}
	return e.seat.line
}

func (l *orderLine) find(e *Entry) (int, bool) {
	return slices.BinarySearchFunc(l.places, placeOf(e), orderPlace.compare)
}

// stepAside takes e, which has ended, out of the line of its order key: then it is the next one's turn.
func (r *Replica) stepAside(e *Entry, now Now, fx *Effects) {
	if l := r.outOfLine(e); l != nil {
		r.moveOn(l, now, fx)
	}
}

// moveOn gives the first task of a line its turn.
func (r *Replica) moveOn(l *orderLine, now Now, fx *Effects) {
	switch next := l.first(); {
	case !r.giveTurn(next, now):
	case next.State == taskstate.Ready:
		r.trigger(next, now, fx)
	default: // it waits for its time, or that has come before its turn
		r.wake.Set(next, next.WakeAt())
	}
}

// outOfLine takes e out of the line of its order key, and returns that; nil = it was not there, or was the last one.
func (r *Replica) outOfLine(e *Entry) *orderLine {
	l := e.line()
	if l == nil {
		return nil
	}
	e.seat.line = nil
	at := 0
	if l.places[0].e != e { // mostly it is the first
		at, _ = l.find(e)
	}
	l.places[at].e = nil
	l.gone++
	if l.tidy(); len(l.places) == 0 {
		delete(r.keys, l.key)
		return nil
	}
	return l
}

// tidy forgets places whose task has ended: those at the front, and all if they are most.
func (l *orderLine) tidy() {
	n := 0
	for n < len(l.places) && l.places[n].e == nil {
		n++
	}
	l.places, l.gone = l.places[n:], l.gone-n
	if 2*l.gone > len(l.places) {
		l.places, l.gone = slices.DeleteFunc(l.places, func(p orderPlace) bool { return p.e == nil }), 0
	}
}

// first is the task of the line whose turn it is.
func (l *orderLine) first() *Entry { return l.places[0].e }

// giveTurn notes that it is the turn of the first task of a line, and tells whether it was not known before. All tasks of the key with an
// earlier place have been read, and have ended. So it is true, and stays so, whatever owner comes next, and however late its trigger is used.
func (r *Replica) giveTurn(e *Entry, now Now) bool {
	if r.replay != nil || e.seat.turnAt > 0 {
		return false
	}
	e.seat.turnAt = now.MS
	e.TakeTurn()
	return true
}

// giveTurnTo does so for e, which has just come, if it has an order key and is the first of its line.
func (r *Replica) giveTurnTo(e *Entry, now Now) {
	if l := e.line(); l != nil && l.first() == e {
		r.giveTurn(e, now)
	}
}

// giveTurns does so for all lines, at the end of a takeover.
func (r *Replica) giveTurns(now Now) {
	for _, l := range r.keys {
		r.giveTurn(l.first(), now)
	}
}

// inLineSince is since when e waits for a grant, or waited for the one that it has: before its turn it could not run. Unix ms.
func (e *Entry) inLineSince() int64 {
	if e.seat == nil {
		return e.ReadyAt
	}
	return max(e.ReadyAt, e.seat.turnAt)
}

// checkOrder compares the lines with the tasks in memory.
func (r *Replica) checkOrder() error {
	in := 0
	for key, l := range r.keys {
		if l.key != key {
			return fmt.Errorf("the line of key %v is that of %v", key, l.key)
		}
		if kept := l.alone[0].e; kept != nil && (len(l.places) != 1 || l.places[0].e != kept) {
			return fmt.Errorf("the line of key %v keeps task %s, %s", key, kept.ID, kept.State)
		}
		gone := 0
		for i, p := range l.places {
			switch {
			case i > 0 && l.places[i-1].compare(p) >= 0:
				return fmt.Errorf("the line of key %v is out of order at %d", key, i)
			case p.e == nil:
				gone++
			case p.e.left || p.e.State.Finished() || p.compare(placeOf(p.e)) != 0 || orderKeyOf(p.e) != key || p.e.line() != l:
				return fmt.Errorf("task %s, %s, is in the line of key %v at %d", p.e.ID, p.e.State, key, i)
			case p.e != l.first() && r.replay == nil && !p.e.AwaitsTurn():
				return fmt.Errorf("it is the turn of task %s, which is not the first of key %v", p.e.ID, key)
			default:
				in++
			}
		}
		if len(l.places) == 0 || l.places[0].e == nil || gone != l.gone {
			return fmt.Errorf("the line of key %v counts %d gone of %d, there are %d", key, l.gone, len(l.places), gone)
		}
		if e := l.first(); r.replay == nil && (e.AwaitsTurn() || e.seat.turnAt == 0) {
			return fmt.Errorf("task %s is the first of key %v, and has no turn", e.ID, key)
		}
	}
	for _, e := range r.tasks {
		switch ended := e.left || e.State.Finished(); {
		case e.Order() != nil && !ended:
			in--
		case e.line() != nil:
			return fmt.Errorf("task %s, %s, has left the line of key %v, and does not know it", e.ID, e.State, e.line().key)
		}
	}
	if in != 0 {
		return fmt.Errorf("%d more tasks are in lines than have an order key", in)
	}
	return nil
}
