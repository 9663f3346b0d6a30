package match

import "github.com/yardmaster-io/yardmaster/shared/heap"

// pollQueue is the polls of a tasklist that wait and have room, first come first served. They stand in lines by
// the types that they accept: a trigger that none of many equal polls accepts costs one look.
type pollQueue struct {
	byKey map[lineKey]*pollLine
	lines []*pollLine
	n     int
	// types counts the lines that name a type, all those that accept any; not lines of polls that stay where they are.
	types map[string]int
	all   int
}

// lineKey names a line: what its polls accept, and whether they stay in their partition.
type lineKey struct {
	types string
	stay  bool
}

func (p *poll) lineKey() lineKey { return lineKey{p.key, p.id == 0} }

// pollLine is those that accept the same types, by their order. It is in its queue's lines at index at.
type pollLine struct {
	at          int
	first, last *poll
}

// add files p by its order.
func (q *pollQueue) add(p *poll) {
	if p.line != nil {
		return
	}
	line := q.byKey[p.lineKey()]
	if line == nil {
		if q.byKey == nil {
			q.byKey = map[lineKey]*pollLine{}
		}
		line = &pollLine{at: len(q.lines)}
		q.byKey[p.lineKey()], q.lines = line, append(q.lines, line)
		q.count(p, 1)
	}
	line.add(p)
	q.n++
}

func (l *pollLine) add(p *poll) {
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

// remove takes p out, and its line if it was the last one there.
func (q *pollQueue) remove(p *poll) {
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
func (q *pollQueue) count(p *poll, n int) {
	switch {
	case p.id == 0:
	case len(p.types) == 0:
		q.all += n
	default:
		if q.types == nil {
			q.types = map[string]int{}
		}
		for _, typ := range p.types {
			if q.types[typ] += n; q.types[typ] == 0 {
				delete(q.types, typ)
			}
		}
	}
}

// takes tells whether a poll waits for a type, of those that may travel.
func (q *pollQueue) takes(typ string) bool { return q.all > 0 || q.types[typ] > 0 }

func (q *pollQueue) drop(l *pollLine, p *poll) {
	delete(q.byKey, p.lineKey())
	last := len(q.lines) - 1
	q.lines[l.at] = q.lines[last]
	q.lines[l.at].at = l.at
	q.lines[last] = nil
	q.lines = q.lines[:last]
}

// taker is the first poll that takes a type, and how many.
func (q *pollQueue) taker(typ string, answerBytesMax int) (*poll, int) {
	var found *poll
	most := 0
	for _, l := range q.lines {
		if !l.first.accepts(typ) {
			continue
		}
		for p := l.first; p != nil && (found == nil || p.order < found.order); p = p.next {
			if room := p.room(answerBytesMax); room > 0 {
				found, most = p, room
				break
			}
		}
	}
	return found, most
}

// each calls f with the polls in their order. If f returns false it gets no more of that line.
func (q *pollQueue) each(f func(p *poll) bool) {
	heads := heap.Heap[*poll]{Less: func(a, b *poll) bool { return a.order < b.order }}
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
