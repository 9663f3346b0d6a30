package match

import (
	"math"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// arrive takes a message of the hint stream apart.
func (s *Shard) arrive(h *Hints) {
	if s.drain.on {
		s.fx.Acks = append(s.fx.Acks, arrival.Ack{Delivery: h.Delivery})
		return
	}
	s.fx.Counts.HintBatches++
	d := arrival.NewDelivery(h.Delivery)
	for i := range h.Releases {
		r := &h.Releases[i]
		if r.Domain == "" || r.Type == "" || len(r.Bookings)%ids.BookingBytes != 0 {
			s.fx.Counts.Malformed++
			continue
		}
		s.releaseAll(r)
	}
	for i := range h.Triggers {
		t := &h.Triggers[i]
		if !t.WellFormed() {
			s.fx.Counts.Malformed++
			continue
		}
		s.arriveTogether(t, d)
	}
	s.arrivals.Finish(d, true)
}

// arriveTogether takes in triggers of one column.
func (s *Shard) arriveTogether(t *arrival.Triggers, from *arrival.Delivery) {
	l := s.list(t.Tasklist)
	s.tree.Came(&l.node, t.Packed)
	s.fx.Counts.Triggers += int64(len(t.Packed) / ids.TriggerBytes)
	if t = t.Without(l.domain.withheld); len(t.Packed) > 0 {
		s.tree.Call(&l.node, t.Type, t.Packed)
		s.arrivals.Add(l, t, from)
	}
}

// match pairs triggers with polls: those taken from the tables, then new ones where
// nothing older or more urgent stands before them in the table.
func (s *Shard) match() {
	for i := range s.calls.Taken {
		s.matchTaken(&s.calls.Taken[i])
	}
	clear(s.calls.Taken)
	s.calls.Taken = s.calls.Taken[:0]
	s.limits.TakeUpSlack()
	s.limits.ReportSuspects()
	for _, name := range s.arrivals.Sort() {
		s.sendAgain(name)
	}
	for i := range s.arrivals.All {
		s.matchArrival(&s.arrivals.All[i])
	}
	clear(s.arrivals.All)
	s.arrivals.All = s.arrivals.All[:0]
}

// matchTaken gives what was taken from a table to polls. A trigger that no poll wants any more, or that has
// no slot of a limit that is new, goes back.
func (s *Shard) matchTaken(t *taken) {
	rates := t.Path.Rates
	if s.withhold(t) {
		s.limits.Unstart(rates, t.Chunk.Len()*t.Chunk.Starts(), s.now.Mono)
		return
	}
	left := t.Chunk.Triggers
	if p := t.List.PathOf(t.Chunk.Column); !s.drain.on && !p.Paused() && p.Within(t.Path) && !t.List.UnknownGroups(t.Chunk.Column) {
		left, _ = s.give(t.List, t.Chunk, p, rates)
	}
	if len(left) > 0 {
		t.Chunk.Drop(t.Chunk.Len() - len(left)/ids.TriggerBytes)
		s.limits.Unstart(rates, t.Chunk.Len()*t.Chunk.Starts(), s.now.Mono)
		s.arrivals.PutBack(t.List, t.Chunk)
	}
}

// matchArrival gives a chunk to polls, or stores it.
func (s *Shard) matchArrival(a *arrived) {
	if p, n := s.direct(a.List, a.Column); n > 0 {
		part := a.Chunk
		part.Triggers = a.Triggers[:min(n, a.Len())*ids.TriggerBytes]
		left, given := s.give(a.List, part, p, nil)
		s.fx.Counts.SyncMatches += int64(given)
		s.limits.Use(p, given)
		a.Drop((len(part.Triggers) - len(left)) / ids.TriggerBytes)
	}
	if len(a.Triggers) > 0 {
		s.fx.Counts.Doubles += int64(a.List.domain.Put(a, s.grabs.Made))
		return
	}
	s.arrivals.Done(a)
}

// direct tells how many triggers of a column may go to polls without passing the table, and which limits
// they need slots of. Limited ones need some that are spare, else they are booked in the table.
func (s *Shard) direct(l *list, at table.Column) (*limit.Path, int) {
	d, p, n := l.domain, l.TypePath(at.Type), math.MaxInt
	if !p.Met(at) {
		return nil, 0
	}
	p = l.PathOf(at)
	if p.Contended() {
		n = 0
	}
	n = s.limits.Spare(p, n)
	switch {
	case n == 0 || l.queue.Len() == 0 || s.drain.on:
		return nil, 0
	case p == limit.Unlimited && d.Down:
		return p, n // overtaking beats standing still
	case d.Open && l.source.Passable():
		return p, n
	}
	return nil, 0
}
