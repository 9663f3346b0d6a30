package match

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/doubles"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// give gives the triggers of a chunk to waiting polls, first come first served. It returns those
// for which there is none, and how many grabs it made. Starts of rates were taken for all of them.
func (s *Shard) give(l *list, c table.Chunk, path *limit.Path, rates []*limit.Limit) (left []byte, n int) {
	if !l.queue.Names(c.Type) {
		return c.Triggers, 0
	}
	from := &origin{list: l, Chunk: c, rates: rates, at: s.now.Mono}
	from.Step, from.Triggers = 0, nil
	from.path, from.scarce = path.Refs, path.Find((*limit.Limit).Scarce) != nil
	p, room := l.queue.Taker(c.Type, s.cfg.AnswerBytesMax)
	for i := 0; i < len(c.Triggers); i += ids.TriggerBytes {
		if p != nil && room == 0 {
			p, room = l.queue.Taker(c.Type, s.cfg.AnswerBytesMax)
		}
		if p == nil {
			return c.Triggers[i:], n
		}
		if s.grab(p, from, path, c.Triggers[i:i+ids.TriggerBytes]) {
			n++
			if room--; room == 0 { // it waits for its grabs
				l.queue.Remove(p)
			}
		} else {
			s.limits.Unstart(rates, c.Starts(), s.now.Mono)
		}
	}
	return nil, n
}

// grab has history asked for a trigger. It returns false where it is of no use, or its
// partition is silent.
func (s *Shard) grab(p *poll, from *origin, path *limit.Path, packed []byte) bool {
	t := ids.TriggerAt(packed, 0)
	at := t.ID.Partition()
	if at >= len(s.lanes) {
		s.fx.Counts.Malformed++
		return false
	}
	print, l := doubles.Print(packed), s.lanes[at]
	switch {
	case path.Holds(limit.MemberOf(t)): // it runs: an owner before has grabbed it
		s.fx.Counts.Doubles++
		return false
	case l.room() <= 0:
		if !s.doubles.Has(print) {
			l.keep(from, t)
		}
		return false
	case !s.doubles.Add(print):
		s.fx.Counts.Doubles++
		return false
	}
	path.Hold(limit.MemberOf(t))
	l.gather = append(l.gather, grab{trigger: t, poll: p, from: from})
	p.Pending++
	p.Asked++
	from.list.undecided++
	return true
}

// ungrab takes back a grab that history has not heard of.
func (s *Shard) ungrab(g *grab) {
	s.doubles.Forget(g.trigger)
	s.unhold(g)
	g.unstart(s)
	s.detach(g)
	g.from.list.undecided--
}

// unhold frees the slots that a grab holds, unless the attempt is known to run: an owner before has
// grabbed it.
func (s *Shard) unhold(g *grab) {
	m := limit.MemberOf(g.trigger)
	g.from.list.Unhold(g.from.Column, m)
}

// unstart gives back the starts of rates that were taken for a grab.
func (g *grab) unstart(s *Shard) {
	s.limits.Unstart(g.from.rates, g.from.Starts(), g.from.at)
}

// detach has a poll not wait for a grab.
func (s *Shard) detach(g *grab) {
	if !g.detached {
		g.detached = true
		g.poll.Pending--
		s.polls.Touch(g.poll)
	}
}

// listen finds out which partitions are silent, and acts on it.
func (s *Shard) listen() {
	for _, l := range s.lanes {
		l.listen(s.now.Mono)
		switch {
		case l.silent:
			s.silence(l)
		case l.open:
			s.bringBack(l)
		}
	}
}

// silence lets polls go on without a silent partition.
func (s *Shard) silence(l *lane) {
	for _, b := range l.flight {
		if b.detached || s.now.Mono < b.firstAt+detachAfter {
			continue
		}
		b.detached = true
		for i := range b.grabs {
			if !b.grabs[i].decided {
				s.detach(&b.grabs[i])
			}
		}
	}
	for i := range l.gather { // behind batches that are not answered, or at rest
		g := &l.gather[i]
		s.ungrab(g)
		l.keep(g.from, g.trigger)
	}
	clear(l.gather)
	l.gather = l.gather[:0]
}

// bringBack has what was put aside for a partition matched again.
func (s *Shard) bringBack(l *lane) {
	for _, c := range l.aside {
		list := s.list(c.Tasklist)
		list.ranks.Back(c.Column)
		s.arrivals = append(s.arrivals, arrival{Chunk: c, list: list})
	}
	l.aside, l.asideN = nil, 0
	if l.dropped {
		l.dropped = false
		s.retrigger(l.partition, "")
	}
}

// send sends the grabs that have gathered, where there is room.
func (s *Shard) send() {
	for _, l := range s.lanes {
		for l.open && l.grabs < l.inFlightMax && len(l.gather) > 0 && l.rested(s.now.Mono) {
			s.sendGrabs(l)
		}
	}
}

// sendGrabs sends one batch of grabs.
func (s *Shard) sendGrabs(l *lane) {
	n := min(len(l.gather), l.eventsMax)
	b := &batch{nonce: s.dice.Uint64(), grabs: make([]grab, 0, n)}
	b.out.Grabs = make([]Grab, 0, n)
	at := map[*poll]int{}
	for i := range l.gather[:n] {
		g := &l.gather[i]
		if g.poll.Answered { // it got something else meanwhile
			s.ungrab(g)
			s.arrivals = append(s.arrivals, arrival{Chunk: g.chunk(), list: g.from.list})
			continue
		}
		g.poll.List.queue.Remove(g.poll)
		ref := b.ref(g.poll, at)
		b.out.Polls[ref].BytesMax += pairing.AnswerBytes(g.poll.JSON, s.cfg.AnswerBytesMax) / g.poll.Asked
		b.out.Grabs = append(b.out.Grabs, Grab{Trigger: g.trigger, Nonce: b.nonceOf(len(b.grabs), g), Path: g.from.path, Poll: ref})
		b.grabs = append(b.grabs, *g)
	}
	l.gather = slices.Delete(l.gather, 0, n)
	if len(b.grabs) == 0 {
		return
	}
	b.left = len(b.grabs)
	l.grabs++
	l.undecided += b.left
	s.fx.Counts.GrabBatches++
	l.add(b, s.now.Mono)
	s.publish(b)
}

// ref is the index of a poll among the batch's, of which at has those that it names.
func (b *batch) ref(p *poll, at map[*poll]int) int {
	i, ok := at[p]
	if !ok {
		i = len(b.out.Polls)
		at[p] = i
		b.out.Polls = append(b.out.Polls, PollRef{Domain: p.List.Domain, Worker: p.Worker, WorkerID: p.WorkerID, ReplyTo: p.ReplyTo, JSON: p.JSON, Max: p.Max})
	}
	return i
}

// publish sends a batch, for the first time or again.
func (s *Shard) publish(b *batch) {
	l := b.lane
	b.sentAt = s.now.Mono
	b.copies++
	out := b.out
	out.Delivered = l.delivered
	l.reported, l.reportedAt, l.news = l.delivered, s.now.Mono, false
	s.fx.Batches = append(s.fx.Batches, out)
}

// resend repeats what history has not answered. It is never given up: what became of
// a batch must be known, or what it granted would be lost.
func (s *Shard) resend(l *lane) {
	for _, b := range l.flight {
		if s.now.Mono-b.sentAt >= resendAfter {
			s.publish(b)
		}
	}
}

// handOver tells history what no one holds, and what has been delivered.
func (s *Shard) handOver() {
	s.answers.confirm(s.now.Mono)
	s.fx.Prove = s.answers.unproven(s.now.Mono) || s.unprovenMoves()
	for _, l := range s.lanes {
		l.advance()
		for len(l.handBacks) > 0 && (l.backs < l.inFlightMax || s.drain.forced) {
			s.sendHandBacks(l)
		}
		for l.open && l.stopping == 0 && len(l.stops) > 0 {
			s.sendStops(l)
		}
		if l.news && (s.now.Mono-l.reportedAt >= heardAfter || s.drain.on) {
			b := &batch{}
			l.add(b, s.now.Mono)
			s.publish(b)
		}
	}
}

// sendHandBacks sends one batch of them.
func (s *Shard) sendHandBacks(l *lane) {
	n := min(len(l.handBacks), l.eventsMax)
	b := &batch{backs: append([]handBack(nil), l.handBacks[:n]...), left: n}
	for _, h := range b.backs {
		g := &h.batch.grabs[h.i]
		b.out.HandBacks = append(b.out.HandBacks, HandBack{
			ID: g.trigger.ID, Version: g.trigger.Version, Position: g.trigger.Position,
			Nonce: h.batch.nonceOf(h.i, g), Domain: g.from.list.Domain,
		})
	}
	l.handBacks = slices.Delete(l.handBacks, 0, n)
	s.fx.Counts.HandedBack += int64(n)
	l.backs++
	l.add(b, s.now.Mono)
	s.publish(b)
}

// takeBack has a granted attempt given back.
func (b *batch) takeBack(i int, confirms bool) {
	b.lane.handBacks = append(b.lane.handBacks, handBack{batch: b, i: i, confirms: confirms})
}

// sendFences announces this owner to every partition.
func (s *Shard) sendFences() {
	for _, l := range s.lanes {
		b := &batch{left: 1}
		b.out.Fence = true
		l.add(b, s.now.Mono)
		s.publish(b)
	}
}

// traced tells of a grab of a traced task that was decided.
func (s *Shard) traced(b *batch, g *grab, v *Verdict) {
	s.fx.Traced = append(s.fx.Traced, Traced{
		Trace: v.Trace, Domain: g.from.list.Domain, Tasklist: g.from.list.Name, Type: g.from.Type,
		ID: g.trigger.ID, Partition: b.lane.partition, Code: v.Refused,
		Matched: g.from.at, Sent: b.firstAt, Decided: s.now.Mono,
	})
}
