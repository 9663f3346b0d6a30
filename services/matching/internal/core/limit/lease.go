package limit

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// LeaseFor is for how long slots are used without asking whether others wait for them. Where they are
	// in use the tables are asked after half of it.
	LeaseFor = 50 * time.Millisecond
	// aheadMax is how many triggers a shard reads ahead. Should its owner die, history sends them again.
	aheadMax = 16_384
)

// Ahead is triggers of one chunk that came out of the tables without slots. None of their type that the
// tables hold for their tasklist comes before them.
type Ahead struct {
	List  *List
	Chunk table.Chunk
}

func (a Ahead) compare(b Ahead) int {
	return cmp.Or(cmp.Compare(a.Chunk.Priority, b.Chunk.Priority), cmp.Compare(a.Chunk.ReadyAt, b.Chunk.ReadyAt))
}

// behind tells whether it comes after a trigger that is to be stored at a place in a table of its tasklist.
func (a Ahead) behind(first *table.Chunk, place int64) bool {
	if a.Chunk.Column == first.Column {
		return a.Chunk.Place() > place
	}
	return a.compare(Ahead{Chunk: *first}) > 0
}

// spare is how many slots are free that the tables count for the shard, and may be used without
// asking: what the tables count is never less than what is in use. They may as long as no one else
// waits for them, as far as was heard within leaseFor.
func (s *Limits) spare(l *Limit) int {
	if l.unsaid || l.Counting() || l.others || !l.Domain.Open || s.Draining || s.now-l.ShownAt >= LeaseFor {
		return 0
	}
	reported := min(l.Entry, l.Max)
	if l.inCall() {
		reported = min(reported, l.In.Stances[l.At].Held)
	}
	return max(0, reported-len(l.Slots))
}

// use notes that n spare slots were booked.
func (s *Limits) use(l *Limit, n int) {
	if n == 0 {
		return
	}
	l.booked += n
	if s.now-l.ShownAt >= LeaseFor/2 && !l.inCall() {
		s.ReportSoon(l)
	}
}

// lease is how many free slots a call keeps for attempts to come, and for how many more it asks: in
// all twice what was booked since the call before, while slots are in use. A call that takes triggers
// has used up what was free.
func (s *Limits) lease(l *Limit) (keeps, asks int) {
	if l.booked == 0 || l.Of != nil || l.others || l.unsaid || s.Draining {
		return 0, 0
	}
	most := 2 * l.booked
	if l.asked == 0 {
		keeps = max(0, min(most, min(l.Entry, l.Max)-len(l.Slots)))
	}
	return keeps, most - keeps
}

// KeepAhead keeps triggers that came without slots; false if there is no limit any more that they wait for.
func (l *List) KeepAhead(lim *Limit, c table.Chunk) bool {
	if lim == nil || lim.Blocked == 0 || l.domain.shard.Draining {
		return false
	}
	a := Ahead{l, c}
	at, _ := slices.BinarySearchFunc(lim.Ahead, a, Ahead.compare)
	lim.Ahead = slices.Insert(lim.Ahead, at, a)
	l.domain.shard.countAhead(a, c.Len())
	return true
}

// MayReadAhead reports whether there is room for triggers that are read ahead.
func (s *Limits) MayReadAhead() bool { return s.aheadN < aheadMax }

func (s *Limits) countAhead(a Ahead, n int) {
	s.aheadN += n
	if a.List.Ahead[a.Chunk.Type] += n; a.List.Ahead[a.Chunk.Type] == 0 {
		delete(a.List.Ahead, a.Chunk.Type)
	}
}

// ReadAhead is how many triggers of a tasklist are.
func (l *List) ReadAhead() int {
	all := 0
	for _, n := range l.Ahead {
		all += n
	}
	return all
}

// HasAhead reports whether some of them are of a type that is accepted.
func (l *List) HasAhead(accepts func(typ string) bool) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(l.Ahead)), accepts)
}

// reuse gives triggers that were read ahead to polls, as far as there are spare slots.
func (s *Limits) reuse(l *Limit) {
	for i := 0; i < len(l.Ahead); {
		a := &l.Ahead[i]
		p := a.List.PathOf(a.Chunk.Column)
		n := s.Spare(p, a.Chunk.Len())
		if n == 0 { // if it lacks a slot of another limit, it goes back when this one is reported
			return
		}
		if l.waiters.others(a.List) { // so those of which triggers were read ahead stand in line, too
			for _, a := range l.Ahead {
				if a.List.Tasks.Polled() {
					a.List.wait(l, a.Chunk.Priority)
				}
			}
			l.Domain.Unread(l)
			return
		}
		part := a.Chunk
		part.Triggers = part.Triggers[:n*ids.TriggerBytes]
		left, given := a.List.Tasks.Pair(part, p)
		s.Use(p, given)
		gone := (len(part.Triggers) - len(left)) / ids.TriggerBytes
		a.Chunk.Drop(gone)
		s.countAhead(*a, -gone)
		switch {
		case len(a.Chunk.Triggers) == 0:
			l.Ahead = slices.Delete(l.Ahead, i, i+1)
		case len(left) > 0: // there is no poll for it
			i++
		}
	}
}

// Unread puts back what was read ahead: the tables are asked again.
func (d *Domain) Unread(l *Limit) {
	for i := range l.Ahead {
		d.shard.putBack(&l.Ahead[i])
	}
	l.Ahead = nil
}

// UnreadBehind puts back what was read ahead of a tasklist and comes behind a trigger that is stored at a place.
func (l *List) UnreadBehind(first *table.Chunk, place int64) {
	if l.Ahead[first.Type] == 0 {
		return
	}
	for lim := range l.Covering(first.Column) {
		lim.Ahead = slices.DeleteFunc(lim.Ahead, func(b Ahead) bool {
			behind := b.List == l && b.behind(first, place)
			if behind {
				l.domain.shard.putBack(&b)
			}
			return behind
		})
	}
}

// putBack has a chunk stored that was read ahead, before the next call takes anything.
func (s *Limits) putBack(a *Ahead) {
	s.countAhead(*a, -a.Chunk.Len())
	a.List.Tasks.PutBack(a.Chunk)
}
