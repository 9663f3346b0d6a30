package replica

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// orderKey names the tasks that run one at a time.
type orderKey struct{ domain, key string }

// orderLine is the tasks of an order key in memory, by their place in the log.
type orderLine struct {
	places []orderPlace
	// gone counts the places whose task has ended.
	gone int
	// asked is the task whose turn is proposed; the log says it in the end, or the task ends before.
	asked *Entry
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
	l := r.keys[orderKeyOf(e)]
	if l == nil {
		l = &orderLine{}
		r.keys[orderKeyOf(e)] = l
	}
	at, found := l.find(e)
	switch {
	case !found:
		l.places = slices.Insert(l.places, at, placeOf(e))
	case l.places[at].e == nil:
		l.places[at].e = e
		l.gone--
	}
}

func (l *orderLine) find(e *Entry) (int, bool) {
	return slices.BinarySearchFunc(l.places, placeOf(e), orderPlace.compare)
}

// stepAside takes e, which has ended, out of the line of its order key: then it is the next one's turn.
func (r *Replica) stepAside(e *Entry) {
	if e.Order() == nil {
		return
	}
	l := r.keys[orderKeyOf(e)]
	if l == nil {
		return
	}
	at, found := l.find(e)
	if !found || l.places[at].e != e {
		return
	}
	l.places[at].e = nil
	l.gone++
	if l.tidy(); len(l.places) == 0 {
		delete(r.keys, orderKeyOf(e))
		return
	}
	r.offerTurn(l)
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

// offerTurn proposes to say in the log that it is the turn of the first task of a line. All tasks of the key with an earlier place have been read,
// and have ended. So it is true, and stays so, whatever became known since to other owners and whenever it is stored.
func (r *Replica) offerTurn(l *orderLine) {
	e := l.first()
	if r.replay != nil || !e.AwaitsTurn() || l.asked == e {
		return
	}
	l.asked = e
	r.own = append(r.own, Proposal{Kind: taskstate.Turn, ID: e.ID, Fence: e.Token(), Domain: e.Domain})
}

// offerTurnOf does so for the line of e, which has just come.
func (r *Replica) offerTurnOf(e *Entry) {
	if e.Order() == nil {
		return
	}
	if l := r.keys[orderKeyOf(e)]; l != nil {
		r.offerTurn(l)
	}
}

// refusedTurns are the lines whose turn the log did not take, and when they are proposed again, Unix ms.
type refusedTurns struct {
	lines []*orderLine
	at    int64
}

// turnRefused notes that the log did not take the turn of e.
func (r *Replica) turnRefused(e *Entry, now Now) {
	if l := r.keys[orderKeyOf(e)]; l != nil {
		r.refusedTurns.lines = append(r.refusedTurns.lines, l)
		r.refusedTurns.at = now.MS + refusedWaitMS
	}
}

// offerTurnsAgain proposes again what the log did not take.
func (r *Replica) offerTurnsAgain(now Now) {
	if len(r.refusedTurns.lines) == 0 || now.MS < r.refusedTurns.at {
		return
	}
	for _, l := range r.refusedTurns.lines {
		if len(l.places) > 0 {
			l.asked = nil
			r.offerTurn(l)
		}
	}
	r.refusedTurns.lines = nil
}

// offerTurns does so for all lines, at the end of a takeover.
func (r *Replica) offerTurns() {
	if len(r.keys) == 0 {
		return
	}
	lines := slices.Collect(maps.Values(r.keys))
	slices.SortFunc(lines, func(a, b *orderLine) int { return a.places[0].compare(b.places[0]) })
	for _, l := range lines {
		r.offerTurn(l)
	}
}

// checkOrder compares the lines with the tasks in memory.
func (r *Replica) checkOrder() error {
	in := 0
	for key, l := range r.keys {
		gone := 0
		for i, p := range l.places {
			switch {
			case i > 0 && l.places[i-1].compare(p) >= 0:
				return fmt.Errorf("the line of key %v is out of order at %d", key, i)
			case p.e == nil:
				gone++
			case p.e.left || p.e.State.Finished() || p.compare(placeOf(p.e)) != 0 || orderKeyOf(p.e) != key:
				return fmt.Errorf("task %s, %s, is in the line of key %v at %d", p.e.ID, p.e.State, key, i)
			case i > 0 && !p.e.AwaitsTurn():
				return fmt.Errorf("it is the turn of task %s, which is not the first of key %v", p.e.ID, key)
			default:
				in++
			}
		}
		if len(l.places) == 0 || l.places[0].e == nil || gone != l.gone {
			return fmt.Errorf("the line of key %v counts %d gone of %d, there are %d", key, l.gone, len(l.places), gone)
		}
		if e := l.first(); r.replay == nil && e.AwaitsTurn() && l.asked != e {
			return fmt.Errorf("task %s is the first of key %v, and its turn is not proposed", e.ID, key)
		}
	}
	for _, e := range r.tasks {
		if e.Order() != nil && !e.left && !e.State.Finished() {
			in--
		}
	}
	if in != 0 {
		return fmt.Errorf("%d more tasks are in lines than have an order key", in)
	}
	return nil
}
