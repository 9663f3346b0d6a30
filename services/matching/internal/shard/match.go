package shard

import (
	"cmp"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// arrival is a chunk on its way from a hint to a poll or the table.
type arrival struct {
	table.Chunk
	list *tasklist
	from *delivery
}

// delivery is a message of the hint stream until all of it is taken care of.
type delivery struct {
	done func(ok bool)
	left int
	// again: part of it could not be taken care of, so all of it must come again.
	again bool
}

func (d *delivery) settle(ok bool) {
	if d == nil {
		return // a chunk put back
	}
	d.again = d.again || !ok
	if d.left--; d.left == 0 {
		d.done(!d.again)
	}
}

// arrive takes a message of the hint stream apart.
func (s *Shard) arrive(in Delivery) {
	if s.draining {
		in.Done(false)
		return
	}
	s.Metrics.HintBatches.Add(1)
	d := &delivery{done: in.Done, left: 1}
	for _, r := range in.Hints.Releases {
		if len(r.Bookings) > 0 && len(r.Bookings)%ids.BookingBytes == 0 && r.Domain != "" && r.Type != "" {
			a := s.account(s.domain(r.Domain), r.Type)
			a.Release = append(a.Release, r.Bookings...)
			a.deliveries = append(a.deliveries, d)
			d.left++
		} else {
			s.Log.Warn("a malformed release was dropped", "domain", r.Domain, "type", r.Type, "bytes", len(r.Bookings))
		}
	}
	for _, g := range in.Hints.Triggers {
		if !wellFormed(g) {
			s.Log.Warn("malformed triggers were dropped", "domain", g.Domain, "tasklist", g.Tasklist, "bytes", len(g.Triggers))
			continue
		}
		s.arriveGroup(g, d)
	}
	d.settle(true)
}

func wellFormed(g *logv1.TriggerGroup) bool {
	return g.Domain != "" && g.Tasklist != "" && g.Type != "" && len(g.Triggers) > 0 && len(g.Triggers)%ids.TriggerBytes == 0
}

// arriveGroup cuts a group into chunks. History's times are of milliseconds: the
// microseconds keep the chunks of one group in order.
func (s *Shard) arriveGroup(g *logv1.TriggerGroup, from *delivery) {
	list := s.list(table.Tasklist{Domain: g.Domain, Name: g.Tasklist, Partition: int(g.TasklistPartition)})
	list.hungryAt = time.Time{}
	s.Metrics.Triggers.Add(int64(len(g.Triggers) / ids.TriggerBytes))
	column := table.Column{
		Priority: min(max(int(g.Priority), table.PriorityFirst), table.PriorityLast),
		Type:     g.Type,
	}
	readyAt := g.ReadyAtUs
	for part := range slices.Chunk(g.Triggers, table.ChunkTriggersMax*ids.TriggerBytes) {
		from.left++
		a := arrival{
			Chunk: table.Chunk{Tasklist: list.Tasklist, Column: column, ReadyAt: readyAt, Triggers: part},
			list:  list, from: from,
		}
		readyAt++
		if list.domain.state == opening && !s.tablesDown {
			if len(list.domain.held) < heldChunksMax {
				list.domain.held = append(list.domain.held, a)
			} else {
				from.settle(false)
			}
			continue
		}
		s.arrivals = append(s.arrivals, a)
	}
}

// match pairs triggers with polls: new ones with waiting polls where nothing older
// or more urgent stands before them in the table, the rest by way of the table.
func (s *Shard) match() {
	for _, c := range s.putBack {
		s.arrivals = append(s.arrivals, arrival{Chunk: c, list: s.list(c.Tasklist)})
	}
	clear(s.putBack)
	s.putBack = s.putBack[:0]
	slices.SortStableFunc(s.arrivals, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ReadyAt, b.ReadyAt))
	})
	for _, a := range s.arrivals {
		s.mark(a.list)
		if s.direct(a.list, a.Type) {
			a.Triggers = s.pair(a.list, a.Chunk, false)
		}
		if len(a.Triggers) == 0 {
			a.from.settle(true)
			continue
		}
		a.list.putting = true
		s.puts = append(s.puts, a)
	}
	clear(s.arrivals)
	s.arrivals = s.arrivals[:0]
	s.store()
	s.fetch()
}

// direct tells whether a trigger may go to a poll without passing the table.
// Limited ones always pass it: there a slot is booked.
func (s *Shard) direct(l *tasklist, typ string) bool {
	if l.polls.n == 0 || s.limit(l.domain, typ) > 0 {
		return false
	}
	if s.tablesDown {
		return true // overtaking beats standing still
	}
	return l.domain.state != opening && !l.putting &&
		!l.index.Any(func(typ string) bool { return s.blocked(l.domain, typ) })
}

// pair gives a chunk's triggers to waiting polls and returns those left over.
func (s *Shard) pair(l *tasklist, c table.Chunk, booked bool) []byte {
	left := c.Triggers
	for p := l.polls.first; p != nil && len(left) > 0; p = p.next {
		if room := s.room(p); room > 0 && p.accepts(c.Type) {
			n := min(room, len(left)/ids.TriggerBytes)
			s.gather(p, c, left[:n*ids.TriggerBytes], booked)
			left = left[n*ids.TriggerBytes:]
		}
	}
	if n := (len(c.Triggers) - len(left)) / ids.TriggerBytes; !booked && n > 0 {
		s.Metrics.SyncMatches.Add(int64(n))
	}
	return left
}

// room is how many tasks a poll may still be given: what it asked for, as far as it
// fits into an answer.
func (s *Shard) room(p *poll) int {
	fits := max(1, s.answerBytesMax(p)/max(1, p.list.taskBytes))
	return min(p.max, fits) - p.pending
}

// store puts what found no poll into the tables, in one call.
func (s *Shard) store() {
	if len(s.puts) == 0 {
		return
	}
	chunks := s.merged()
	ok, lost := false, map[string]bool{}
	if s.tablesUsable() {
		ctx, cancel := s.callContext()
		err := s.Tables.Put(ctx, chunks)
		cancel()
		ok = s.called("put", err)
		for _, name := range lostDomains(err) {
			lost[name], ok = true, true
		}
	}
	for _, a := range s.puts {
		a.list.putting = false
		// What was lost with the table comes again when it is opened.
		a.from.settle(ok)
	}
	if ok {
		for _, c := range chunks {
			if l := s.lists[c.Tasklist]; !lost[c.Domain] {
				l.index.Put(c.Column, c.ReadyAt, c.Len())
			}
		}
	}
	clear(s.puts)
	s.puts = s.puts[:0]
}

// merged joins small chunks of one column: the tables' work is per chunk.
func (s *Shard) merged() []table.Chunk {
	type place struct {
		table.Tasklist
		table.Column
	}
	chunks := make([]table.Chunk, 0, len(s.puts))
	last := map[place]int{}
	for _, a := range s.puts {
		at := place{a.Tasklist, a.Column}
		if i, ok := last[at]; ok && len(chunks[i].Triggers)+len(a.Triggers) <= table.ChunkTriggersMax*ids.TriggerBytes {
			chunks[i].Triggers = append(slices.Clip(chunks[i].Triggers), a.Triggers...)
			continue
		}
		last[at] = len(chunks)
		chunks = append(chunks, a.Chunk)
	}
	return chunks
}

// group is polls of one tasklist that accept the same types.
type group struct {
	list  *tasklist
	polls []*poll
}

// fetch takes triggers for waiting polls out of the tables, in one call.
func (s *Shard) fetch() {
	if len(s.dirty) == 0 || !s.tablesUsable() {
		return // when the tables answer again, all tasklists are marked
	}
	var wants []table.Want
	var groups []group
	for _, l := range s.dirty {
		l.dirty = false
		if l.polls.n > 0 && l.domain.state != opening && !l.index.Empty() {
			wants, groups = s.wants(l, wants, groups)
		}
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
	if len(wants) == 0 {
		return
	}
	ctx, cancel := s.callContext()
	taken, err := s.Tables.Pop(ctx, wants)
	cancel()
	s.called("pop", err)
	for i := range taken {
		s.took(groups[i], wants[i], taken[i])
	}
}

// wants asks for as many triggers as a tasklist's polls have room for.
func (s *Shard) wants(l *tasklist, wants []table.Want, groups []group) ([]table.Want, []group) {
	first := len(wants)
	index := map[string]int{}
	total := 0
	for p := l.polls.first; p != nil && total < s.Config.PopMax; p = p.next {
		room := min(s.room(p), s.Config.PopMax-total)
		if room <= 0 {
			continue
		}
		i, ok := index[p.key]
		if !ok {
			skip := func(typ string) bool { return s.blocked(l.domain, typ) || !p.accepts(typ) }
			candidates := l.index.Candidates(nil, candidatesMax, skip)
			i = -1
			if len(candidates) > 0 {
				for j := range candidates {
					candidates[j].Limit = s.limit(l.domain, candidates[j].Type)
				}
				i = len(wants)
				wants = append(wants, table.Want{
					Tasklist: l.Tasklist, Candidates: candidates,
					Now: s.now.UnixMilli(), Until: s.now.Add(bookingTTL).UnixMilli(),
				})
				groups = append(groups, group{list: l})
			}
			index[p.key] = i
		}
		if i >= first {
			wants[i].N += room
			groups[i].polls = append(groups[i].polls, p)
			total += room
		}
	}
	return wants, groups
}

// took gives what a want got to its polls, and learns from it about the table.
func (s *Shard) took(g group, w table.Want, got table.Taken) {
	n := 0
	for _, b := range got.Batches {
		n += len(b.Triggers) / ids.TriggerBytes
		left := b.Triggers
		chunk := table.Chunk{Tasklist: g.list.Tasklist, Column: b.Column, ReadyAt: b.ReadyAt}
		for _, p := range g.polls {
			if room := min(s.room(p), len(left)/ids.TriggerBytes); room > 0 {
				s.gather(p, chunk, left[:room*ids.TriggerBytes], b.Booked)
				left = left[room*ids.TriggerBytes:]
			}
		}
		if len(left) > 0 {
			panic("shard: the tables gave more than was asked for")
		}
	}
	s.Metrics.Matches.Add(int64(n))
	if g.list.domain.state == opening {
		return // lost meanwhile: what the heads say is of another life
	}
	for _, h := range got.Heads {
		g.list.index.Seen(h)
	}
	for _, typ := range got.Full {
		g.list.domain.aside[typ] = true
	}
	// There may be more for these polls, or for others behind them.
	progress := n > 0 || len(got.Heads) > 0 || len(got.Full) > 0
	if progress && g.list.polls.n > 0 && !g.list.index.Empty() {
		s.mark(g.list)
		s.again = true
	}
}
