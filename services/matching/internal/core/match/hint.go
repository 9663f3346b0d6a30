package match

import (
	"cmp"
	"math"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// arrival is a chunk on its way from a hint to a poll or the table.
type arrival struct {
	table.Chunk
	list *list
	from *delivery
	// groups are those of its triggers, in their order; nil = none has one. turns are theirs, in their order, from when it
	// is to be stored in a column that groups share.
	groups []string
	ranks  []fairness.Rank
	// known: it is known which groups they are of.
	known bool
}

// drop takes the first n triggers out, which found a poll.
func (a *arrival) drop(n int) {
	a.Drop(n)
	if a.groups != nil {
		a.groups = a.groups[n:]
	}
	if a.ranks != nil {
		a.ranks = a.ranks[n:]
	}
}

// keep leaves the triggers for which keeps is true, by index, and returns how many it took out. Memory that the chunk shares with
// others stays as it is.
func (a *arrival) keep(keeps func(i int) bool) (out int) {
	for i := range a.Len() {
		if !keeps(i) {
			out++
		}
	}
	if out == 0 {
		return 0
	}
	left := *a
	left.Triggers, left.groups, left.ranks = make([]byte, 0, len(a.Triggers)), nil, nil
	for i := range a.Len() {
		if !keeps(i) {
			continue
		}
		left.Triggers = append(left.Triggers, a.Trigger(i)...)
		if a.groups != nil {
			left.groups = append(left.groups, a.groups[i])
		}
		if a.ranks != nil {
			left.ranks = append(left.ranks, a.ranks[i])
		}
	}
	*a = left
	return out
}

// place is where its first trigger stands in its column.
func (a *arrival) place() int64 {
	if len(a.ranks) > 0 {
		return a.ranks[0].At
	}
	return a.Place()
}

// delivery is a message of the hint stream until all of it is taken care of.
type delivery struct {
	id   uint64
	left int
	// again: part of it could not be taken care of, so all of it must come again.
	again bool
}

// finishPart notes that a part of a message is done with. A trigger that was put back is of none.
func (s *Shard) finishPart(d *delivery, ok bool) {
	if d == nil {
		return
	}
	d.again = d.again || !ok
	if d.left--; d.left == 0 {
		s.fx.Acks = append(s.fx.Acks, Ack{Delivery: d.id, OK: !d.again})
	}
}

// arrive takes a message of the hint stream apart.
func (s *Shard) arrive(h *Hints) {
	if s.drain.on {
		s.fx.Acks = append(s.fx.Acks, Ack{Delivery: h.Delivery})
		return
	}
	s.fx.Counts.HintBatches++
	d := &delivery{id: h.Delivery, left: 1}
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
		if t.Domain == "" || t.Name == "" || t.Type == "" || !t.whole() {
			s.fx.Counts.Malformed++
			continue
		}
		s.arriveTogether(t, d)
	}
	s.finishPart(d, true)
}

// whole tells whether there are triggers, and a group for each or for none.
func (t *Triggers) whole() bool {
	n := len(t.Packed) / ids.TriggerBytes
	return n > 0 && len(t.Packed)%ids.TriggerBytes == 0 && (t.Groups == nil || len(t.Groups) == n)
}

// arriveTogether cuts triggers of one column into chunks. History's times are of milliseconds: the
// microseconds keep the chunks in order.
func (s *Shard) arriveTogether(t *Triggers, from *delivery) {
	l := s.list(t.Tasklist)
	s.tree.Came(&l.node, t.Packed)
	s.fx.Counts.Triggers += int64(len(t.Packed) / ids.TriggerBytes)
	if t = t.without(l.domain.withheld); len(t.Packed) == 0 {
		return
	}
	s.tree.Call(&l.node, t.Type, t.Packed)
	column := table.Column{Priority: min(max(t.Priority, table.PriorityFirst), table.PriorityLast), Type: t.Type}
	cost := table.Cost(t.Cost)
	if l.UnknownGroups(column) {
		s.byGroup(&arrival{
			Chunk: table.Chunk{Tasklist: l.Tasklist, Column: column, ReadyAt: t.ReadyAt, Cost: cost, Triggers: t.Packed}, list: l, from: from, groups: t.Groups,
		})
		return
	}
	packed, groups := s.withoutIdle(t, l, from)
	readyAt := t.ReadyAt
	for part := range slices.Chunk(packed, table.ChunkTriggersMax*ids.TriggerBytes) {
		from.left++
		a := arrival{
			Chunk: table.Chunk{Tasklist: l.Tasklist, Column: column, ReadyAt: readyAt, Cost: cost, Triggers: part},
			list:  l, from: from, known: true,
		}
		if groups != nil {
			a.groups, groups = groups[:a.Len()], groups[a.Len():]
		}
		s.arrivals = append(s.arrivals, a)
		readyAt++
	}
}

// match pairs triggers with polls: those taken from the tables, then new ones where
// nothing older or more urgent stands before them in the table.
func (s *Shard) match() {
	for i := range s.taken {
		s.matchTaken(&s.taken[i])
	}
	clear(s.taken)
	s.taken = s.taken[:0]
	s.limits.TakeUpSlack()
	s.limits.ReportSuspects()
	s.letGoPaused()
	s.splitArrivals()
	slices.SortStableFunc(s.arrivals, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ReadyAt, b.ReadyAt))
	})
	for i := range s.arrivals {
		s.matchArrival(&s.arrivals[i])
	}
	clear(s.arrivals)
	s.arrivals = s.arrivals[:0]
}

// matchTaken gives what was taken from a table to polls. A trigger that no poll wants any more, or that has
// no slot of a limit that is new, goes back.
func (s *Shard) matchTaken(t *taken) {
	rates := t.path.Rates
	if t.withhold(s) {
		s.limits.Unstart(rates, t.chunk.Len()*t.chunk.Starts(), s.now.Mono)
		return
	}
	left := t.chunk.Triggers
	if p := t.list.PathOf(t.chunk.Column); !s.drain.on && !p.Paused() && p.Within(t.path) && !t.list.UnknownGroups(t.chunk.Column) {
		left, _ = s.give(t.list, t.chunk, p, rates)
	}
	if len(left) > 0 {
		t.chunk.Drop(t.chunk.Len() - len(left)/ids.TriggerBytes)
		s.limits.Unstart(rates, t.chunk.Len()*t.chunk.Starts(), s.now.Mono)
		s.arrivals = append(s.arrivals, arrival{Chunk: t.chunk, list: t.list})
	}
}

// matchArrival gives a chunk to polls, or stores it.
func (s *Shard) matchArrival(a *arrival) {
	if p, n := s.direct(a.list, a.Column); n > 0 {
		part := a.Chunk
		part.Triggers = a.Triggers[:min(n, a.Len())*ids.TriggerBytes]
		left, given := s.give(a.list, part, p, nil)
		s.fx.Counts.SyncMatches += int64(given)
		s.limits.Use(p, given)
		a.drop((len(part.Triggers) - len(left)) / ids.TriggerBytes)
	}
	if len(a.Triggers) > 0 {
		s.store(a)
		return
	}
	s.finishPart(a.from, true)
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
	case d.Open && l.putting == 0 && !l.index.Any(l.Unavailable):
		return p, n
	}
	return nil, 0
}

// store has a chunk stored, as soon as the tables are open.
func (s *Shard) store(a *arrival) {
	d := a.list.domain
	switch {
	case d.Down:
		s.letGo(a)
		return
	case !d.Open:
		if len(d.held) >= heldChunksMax {
			s.letGo(a)
			return
		}
		d.held = append(d.held, *a)
		return
	}
	s.fx.Counts.Doubles += int64(a.keep(func(i int) bool { return !s.grabs.Made(a.Trigger(i)) }))
	if len(a.Triggers) == 0 {
		s.finishPart(a.from, true)
		return
	}
	s.assignRanks(a)
	d.puts = append(d.puts, *a)
	a.list.putting++
	a.list.UnreadBehind(&a.Chunk, a.place())
	if a.list.queue.Len() > 0 {
		s.mark(a.list)
	}
	s.work(d)
}
