package match

import (
	"cmp"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// leaseFor is for how long slots are used without asking whether others wait for them. Where they are
	// in use the tables are asked after half of it.
	leaseFor = 50 * time.Millisecond
	// aheadMax is how many triggers a shard reads ahead. Should its owner die, history sends them again.
	aheadMax = 16_384
)

// ahead is triggers of one chunk that came out of the tables without slots. None of their type that the
// tables hold for their tasklist comes before them.
type ahead struct {
	list  *list
	chunk table.Chunk
}

func (a ahead) compare(b ahead) int {
	return cmp.Or(cmp.Compare(a.chunk.Priority, b.chunk.Priority), cmp.Compare(a.chunk.ReadyAt, b.chunk.ReadyAt))
}

// behind tells whether it comes after a trigger that is to be stored in a table of its tasklist.
func (a ahead) behind(first *arrival) bool {
	if a.chunk.Column == first.Column {
		return a.chunk.Place() > first.place()
	}
	return a.compare(ahead{chunk: first.Chunk}) > 0
}

// inCall tells whether a call is under way that names l.
func (l *limit) inCall() bool { return l.domain.call != nil && l.in == l.domain.call }

// spare is how many slots are free that the tables count for the shard, and may be used without
// asking: what the tables count is never less than what is in use. They may as long as no one else
// waits for them, as far as was heard within leaseFor.
func (s *Shard) spare(l *limit) int {
	if l.unsaid || l.counting() || l.others || l.domain.state != open || s.drain.on || s.now.Mono-l.shownAt >= leaseFor {
		return 0
	}
	reported := min(l.entry, l.Max)
	if l.inCall() {
		reported = min(reported, l.domain.call.out.Stances[l.at].Held)
	}
	return max(0, reported-len(l.held))
}

// use notes that n spare slots were booked.
func (s *Shard) use(l *limit, n int) {
	if n == 0 {
		return
	}
	l.booked += n
	if s.now.Mono-l.shownAt >= leaseFor/2 && !l.inCall() {
		s.dueLimit(l)
	}
}

// lease is how many free slots a call keeps for attempts to come, and for how many more it asks: in
// all twice what was booked since the call before, while slots are in use. A call that takes triggers
// has used up what was free.
func (s *Shard) lease(l *limit) (keeps, asks int) {
	if l.booked == 0 || l.of != nil || l.others || l.unsaid || s.drain.on {
		return 0, 0
	}
	most := 2 * l.booked
	if l.asked == 0 {
		keeps = max(0, min(most, min(l.entry, l.Max)-len(l.held)))
	}
	return keeps, most - keeps
}

// readAhead keeps triggers that came without slots.
func (s *Shard) readAhead(l *list, lim *limit, c table.Chunk) {
	if lim == nil || lim.blocked == 0 || s.drain.on { // there is no limit any more
		s.arrivals = append(s.arrivals, arrival{Chunk: c, list: l})
		return
	}
	a := ahead{l, c}
	at, _ := slices.BinarySearchFunc(lim.ahead, a, ahead.compare)
	lim.ahead = slices.Insert(lim.ahead, at, a)
	s.countAhead(a, c.Len())
}

func (s *Shard) countAhead(a ahead, n int) {
	s.ahead += n
	if a.list.ahead[a.chunk.Type] += n; a.list.ahead[a.chunk.Type] == 0 {
		delete(a.list.ahead, a.chunk.Type)
	}
}

// readAhead is how many triggers of a tasklist are.
func (l *list) readAhead() int {
	all := 0
	for _, n := range l.ahead {
		all += n
	}
	return all
}

// hasAhead tells whether some of them are of a type that a poll accepts.
func (l *list) hasAhead(p *poll) bool {
	for typ := range l.ahead {
		if p.Accepts(typ) {
			return true
		}
	}
	return false
}

// reuse gives triggers that were read ahead to polls, as far as there are spare slots.
func (s *Shard) reuse(l *limit) {
	for i := 0; i < len(l.ahead); {
		a := &l.ahead[i]
		p := s.pathOf(a.list, a.chunk.Column)
		n := s.spareOf(p, a.chunk.Len())
		if n == 0 { // if it lacks a slot of another limit, it goes back when this one is reported
			return
		}
		if l.waiters.others(a.list) { // so those of which triggers were read ahead stand in line, too
			for _, a := range l.ahead {
				if a.list.queue.Len() > 0 {
					s.wait(l, a.list, a.chunk.Priority)
				}
			}
			s.unread(l)
			return
		}
		if a.list.asking || a.list.dirty && a.list.moreUrgent(a.chunk.Priority) { // its polls get those first
			i++
			continue
		}
		part := a.chunk
		part.Triggers = part.Triggers[:n*ids.TriggerBytes]
		left, given := s.give(a.list, part, p, nil)
		s.useAll(p, given)
		gone := (len(part.Triggers) - len(left)) / ids.TriggerBytes
		a.chunk.Drop(gone)
		s.countAhead(*a, -gone)
		switch {
		case len(a.chunk.Triggers) == 0:
			l.ahead = slices.Delete(l.ahead, i, i+1)
		case len(left) > 0: // there is no poll for it
			i++
		}
	}
}

// moreUrgent tells whether the table holds something that may be had before what is of a priority.
func (l *list) moreUrgent(priority int) bool {
	first := l.index.Candidates(1, l.blocked)
	return len(first) > 0 && first[0].Priority < priority
}

// unread puts back what was read ahead: the tables are asked again.
func (s *Shard) unread(l *limit) {
	for i := range l.ahead {
		s.putBack(&l.ahead[i])
	}
	l.ahead = nil
}

// unreadBehind puts back what was read ahead and comes behind a trigger that is stored.
func (s *Shard) unreadBehind(l *limit, a *arrival) {
	l.ahead = slices.DeleteFunc(l.ahead, func(b ahead) bool {
		behind := b.list == a.list && b.behind(a)
		if behind {
			s.putBack(&b)
		}
		return behind
	})
}

// putBack has a chunk stored that was read ahead, before the next call takes anything.
func (s *Shard) putBack(a *ahead) {
	s.countAhead(*a, -a.chunk.Len())
	back, d := arrival{Chunk: a.chunk, list: a.list}, a.list.domain
	if d.state != open {
		s.arrivals = append(s.arrivals, back)
		return
	}
	d.puts = append(d.puts, back)
	a.list.putting++
	if a.list.queue.Len() > 0 {
		s.mark(a.list)
	}
	s.work(d)
}
