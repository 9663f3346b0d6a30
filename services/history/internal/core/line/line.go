// Package line keeps the lines of order keys: which tasks of a key are in memory and due, in the order of their places in the log (decision 0044).
//
// Owns: who is first in each line, since when that is known, and which lines are full. Never does: decide whether a task may run, or read a clock.
// On failure: nothing can fail.
package line

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// fullMax bounds the full order keys that are reported.
const fullMax = 100

// Key names the tasks that run one at a time.
type Key struct{ Domain, Name string }

// Lines are those of a partition. They are not safe for concurrent use.
type Lines struct {
	// tasksMax is how many tasks a line has when it is full; 0 = no line is.
	tasksMax int
	of       map[Key]*line
	full     map[*line]bool
}

// Seat is what a task knows of its line.
type Seat struct {
	Task *taskstate.Task
	// TurnAt is when its owner knew that it is its turn, Unix ms; 0 = it waits for that.
	TurnAt int64
	// line is the one that it is in; nil = it is in none.
	line *line
}

// line is the tasks of a key.
type line struct {
	key    Key
	places []place
	// empty counts the places whose task has left.
	empty int
	// alone is where places begins: most lines are short.
	alone [1]place
}

// place is the place of one task; seat is nil if it has left.
type place struct {
	seq   uint64
	index uint32
	// id tells two tasks apart of one index: an owner that could not read a task of the message counted less.
	id   ids.TaskID
	seat *Seat
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.seq, o.seq), cmp.Compare(p.index, o.index), bytes.Compare(p.id[:], o.id[:]))
}

func placeOf(s *Seat) place {
	return place{s.Task.Position.Seq(), s.Task.Order().Index, s.Task.ID, s}
}

// New makes lines that are full when they have so many tasks; 0 = they never are.
func New(tasksMax int) *Lines {
	return &Lines{tasksMax: tasksMax, of: make(map[Key]*line), full: make(map[*line]bool)}
}

// Len is how many lines there are.
func (ls *Lines) Len() int { return len(ls.of) }

// Enter takes a task into the line of its order key.
func (ls *Lines) Enter(s *Seat) {
	key := Key{s.Task.Domain, s.Task.Order().Key}
	l := ls.of[key]
	if l == nil {
		l = &line{key: key}
		l.places = l.alone[:0]
		ls.of[key] = l
	}
	at, found := l.find(s)
	switch {
	case !found:
		l.places = slices.Insert(l.places, at, placeOf(s))
		if len(l.places) > 1 { // they lie elsewhere now, and what is left here would keep a task that has left
			l.alone[0].seat = nil
		}
	case l.places[at].seat != nil:
		return
	default:
		l.places[at].seat = s
		l.empty--
	}
	s.line = l
	ls.noteLength(l)
}

// Leave takes a task out of its line, and returns the first one of that; nil = it was in none, or was the last one.
func (ls *Lines) Leave(s *Seat) *Seat {
	if s == nil || s.line == nil {
		return nil
	}
	l := s.line
	s.line = nil
	at := 0
	if l.places[0].seat != s { // mostly it is the first
		at, _ = l.find(s)
	}
	l.places[at].seat = nil
	l.empty++
	ls.noteLength(l)
	if l.tidy(); len(l.places) == 0 {
		delete(ls.of, l.key)
		return nil
	}
	return l.first()
}

// First tells whether the task is the first one of its line.
func (s *Seat) First() bool { return s != nil && s.line != nil && s.line.first() == s }

// Firsts calls do with the first task of each line.
func (ls *Lines) Firsts(do func(*Seat)) {
	for _, l := range ls.of {
		do(l.first())
	}
}

// Full calls tell for the order keys whose line is full: those with the longest lines.
func (ls *Lines) Full(tell func(key Key, tasks int)) {
	full := slices.Collect(maps.Keys(ls.full))
	slices.SortFunc(full, func(a, b *line) int { return cmp.Compare(b.len(), a.len()) })
	for _, l := range full[:min(len(full), fullMax)] {
		tell(l.key, l.len())
	}
}

func (ls *Lines) isFull(l *line) bool { return ls.tasksMax > 0 && l.len() >= ls.tasksMax }

func (ls *Lines) noteLength(l *line) {
	if ls.isFull(l) {
		ls.full[l] = true
	} else {
		delete(ls.full, l)
	}
}

func (l *line) len() int { return len(l.places) - l.empty }

// first is the task of the line whose turn it is.
func (l *line) first() *Seat { return l.places[0].seat }

func (l *line) find(s *Seat) (int, bool) {
	return slices.BinarySearchFunc(l.places, placeOf(s), place.compare)
}

// tidy forgets places whose task has left: those at the front, and all if they are most.
func (l *line) tidy() {
	n := 0
	for n < len(l.places) && l.places[n].seat == nil {
		n++
	}
	l.places, l.empty = l.places[n:], l.empty-n
	if 2*l.empty > len(l.places) {
		l.places, l.empty = slices.DeleteFunc(l.places, func(p place) bool { return p.seat == nil }), 0
	}
}

// Check compares the lines with themselves, and with the seats of all tasks that are to be in one. Live: the first of each has its turn, and no other.
func (ls *Lines) Check(seats []*Seat, live bool) error {
	in := 0
	for key, l := range ls.of {
		if err := l.check(key, live); err != nil {
			return err
		}
		if ls.full[l] != ls.isFull(l) {
			return fmt.Errorf("the line of key %v has %d tasks, full: %v", key, l.len(), ls.full[l])
		}
		in += l.len()
	}
	for _, s := range seats {
		if s == nil || s.line == nil {
			return fmt.Errorf("%d tasks are in lines: one of %d that have an order key is not", in, len(seats))
		}
	}
	if in != len(seats) {
		return fmt.Errorf("%d tasks are in lines, %d have an order key", in, len(seats))
	}
	return nil
}

func (l *line) check(key Key, live bool) error {
	if kept := l.alone[0].seat; l.key != key || kept != nil && (len(l.places) != 1 || l.places[0].seat != kept) {
		return fmt.Errorf("the line of key %v is that of %v, and keeps %v", key, l.key, kept)
	}
	empty := 0
	for i, p := range l.places {
		if i > 0 && l.places[i-1].compare(p) >= 0 {
			return fmt.Errorf("the line of key %v is out of order at %d", key, i)
		}
		s := p.seat
		switch {
		case s == nil:
			empty++
		case p.compare(placeOf(s)) != 0 || s.line != l || s.Task.State.Finished() || (Key{s.Task.Domain, s.Task.Order().Key}) != key:
			return fmt.Errorf("task %s, %s, is in the line of key %v at %d", s.Task.ID, s.Task.State, key, i)
		case live && s.First() == (s.Task.AwaitsTurn() || s.TurnAt == 0):
			return fmt.Errorf("task %s is at %d of key %v; it awaits its turn: %v, which came at %d", s.Task.ID, i, key, s.Task.AwaitsTurn(), s.TurnAt)
		}
	}
	if len(l.places) == 0 || l.places[0].seat == nil || empty != l.empty {
		return fmt.Errorf("the line of key %v counts %d empty places of %d, there are %d", key, l.empty, len(l.places), empty)
	}
	return nil
}
