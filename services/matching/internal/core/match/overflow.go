package match

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// A limit that is full may have a policy: what waits for its slots is rejected, or its oldest attempts make room. Here it is found out who
// waits for which limit, and since when; history decides. A policy acts once the limit has been full for as long as a trigger is to wait,
// as each call about it has said. It never acts while it is not known what runs, and on no trigger that waits for something else.
//
// Tasks that are to be rejected come out of the tables without slots, oldest first. A task that has not waited for long enough goes back.

// OnFull is what a limit does that is full.
type OnFull uint8

// The policies.
const (
	// Wait: triggers wait until a slot is free.
	Wait OnFull = iota
	// RejectNewest: tasks that have waited for OnFullAfter end.
	RejectNewest
	// CancelOldest: for each task that has waited for OnFullAfter the attempt is asked to stop that holds a slot for the longest.
	CancelOldest
)

const (
	// overflowEvery is how often a limit is looked at at most whose policy is to act.
	overflowEvery = time.Second
	// overflowLooksMax is how many limits a sweep looks at, overflowWantsMax how many columns and tasklists one call takes triggers of that are
	// to be rejected, overflowMax how many triggers of each, and how many attempts of a limit are asked to stop at a time.
	overflowLooksMax, overflowWantsMax, overflowMax = 256, 64, 256
)

// overflow is what is known of a limit that has a policy.
type overflow struct {
	// fullAt is since when it is full, as each call about it said; 0 = it is not.
	fullAt time.Duration
	// at is when it may act again.
	at time.Duration
	// wanted: in domain.overflows.
	wanted bool
}

// spill is one want for triggers that are to be rejected.
type spill struct {
	limit *limit
	list  *list
}

// policy is what a limit does that is full.
func (l *limit) policy() OnFull {
	switch {
	case l.of != nil:
		return l.of.OnFull
	case !l.counted() || l.Shadow:
		return Wait
	}
	return l.OnFull
}

// patience is how long a trigger waits until the policy acts.
func (l *limit) patience() time.Duration {
	if l.of != nil {
		return l.of.OnFullAfter
	}
	return l.OnFullAfter
}

// sawFull notes what a call says about a limit that has a policy. waited: triggers waited for it before; booked: some got slots. If
// none did, nothing tells whether it was full all the time.
func (s *Shard) sawFull(l *limit, st *table.LimitState, waited bool, booked int) {
	if l.policy() == Wait {
		l.over = overflow{}
		l.domain.rings[ringOver].remove(l, ringOver)
		return
	}
	switch full := st.Used >= l.Max && !st.Restoring && !l.counting(); {
	case !full:
		l.over.fullAt = 0
	case l.over.fullAt == 0 || booked > 0 && !waited:
		l.over.fullAt = s.now.Mono
	}
	if ring := &l.domain.rings[ringOver]; l.over.fullAt > 0 && l.blocked == table.Full {
		ring.add(l, ringOver)
	} else if l.over.fullAt == 0 {
		ring.remove(l, ringOver)
	}
}

// overflows tells whether the policy of a limit may act now.
func (l *limit) overflows(now time.Duration) bool {
	return l.policy() != Wait && l.blocked == table.Full && l.over.fullAt > 0 && now-l.over.fullAt >= l.patience() && l.known() && !l.counting()
}

// sweepOverflows has the policies act of limits that have been full for long enough.
func (s *Shard) sweepOverflows(d *domain) {
	if d.state != open || s.drain.on { // also while a call is under way: in a busy domain one always is
		return
	}
	var ask []*limit
	for _, l := range d.rings[ringOver].next(overflowLooksMax) {
		switch {
		case !l.overflows(s.now.Mono) || s.now.Mono < l.over.at:
		case l.policy() == CancelOldest:
			ask = append(ask, l)
		default:
			s.wantOverflow(l)
		}
	}
	s.askHolders(d, ask)
}

// wantOverflow has a call take triggers that are to be rejected for a limit.
func (s *Shard) wantOverflow(l *limit) {
	if l.over.wanted {
		return
	}
	s.unread(l)
	l.over.wanted = true
	l.domain.overflows = append(l.domain.overflows, l)
	s.work(l.domain)
}

// wantOverflows has a call take triggers that are to be rejected.
func (s *Shard) wantOverflows(d *domain, c *call) {
	n := 0
	for ; n < len(d.overflows) && len(c.spills) < overflowWantsMax && c.candidates < callCandidatesMax; n++ {
		l := d.overflows[n]
		l.over.wanted = false
		if s.drain.on || l.policy() != RejectNewest || !l.overflows(s.now.Mono) {
			continue
		}
		l.over.at = s.now.Mono + overflowEvery
		for _, w := range s.waitingFor(l) {
			c.stand(l)
			w.want.N = overflowMax
			c.out.Wants = append(c.out.Wants, w.want)
			c.spills = append(c.spills, spill{l, w.list})
			c.candidates += len(w.want.Candidates)
		}
	}
	d.overflows = shift(d.overflows, n)
}

// waiting is columns of a tasklist that wait for a limit.
type waiting struct {
	list *list
	want table.Want
}

// waitingFor are the columns that wait for a limit, as far as they are looked at, and have waited for long enough as far as is known. What
// is paused, or waits for a worker, is none of it.
func (s *Shard) waitingFor(l *limit) (all []waiting) {
	add := func(list *list, candidates []table.Candidate) {
		candidates = slices.DeleteFunc(candidates, func(c table.Candidate) bool {
			return !s.acts(l, list, c.Type, c.Head)
		})
		if len(candidates) > 0 {
			all = append(all, waiting{list, table.Want{Tasklist: list.Tasklist, Candidates: candidates}})
		}
	}
	if l.of != nil {
		for _, p := range l.parked[:min(len(l.parked), overflowWantsMax)] {
			if age, ok := p.list.index.Age(p.at); ok {
				add(p.list, []table.Candidate{{Column: p.at, Head: age, Most: overflowMax}})
			}
		}
		return all
	}
	for i := range l.waiters.lines {
		for w := l.waiters.lines[i].first; w != nil && len(all) < overflowWantsMax; w = w.next {
			add(w.list, w.list.index.CandidatesOf(l.Types, 0, candidatesMax, func(at table.Column) bool {
				return w.list.path(at.Type).taken() != l
			}))
		}
	}
	return all
}

// acts tells whether the policy of a limit acts on triggers of a type that are ready since an instant, Unix µs: they are not paused, and a poll waits for them.
func (s *Shard) acts(l *limit, on *list, typ string, readyAt int64) bool {
	return s.longAgo(l, readyAt) && on.path(typ).pause == nil && on.polledFor(typ)
}

// polledFor tells whether a poll waits for a type here. One of a tasklist with several partitions may wait in any of them.
func (l *list) polledFor(typ string) bool {
	return l.spread || l.queue.Takes(typ) ||
		slices.ContainsFunc(l.queue.Lines(), func(line *pairing.Line[*list, grant]) bool { return line.First().Accepts(typ) })
}

// longAgo tells whether a trigger that is ready since an instant, Unix µs, has waited for long enough. Where groups take turns it may be younger.
func (s *Shard) longAgo(l *limit, readyAt int64) bool {
	if readyAt >= fairness.IdleFrom {
		readyAt -= fairness.IdleFrom
	}
	return readyAt/1000 <= s.readyBy(l)
}

// readyBy is since when tasks have to be ready that have waited for long enough for a limit, Unix ms.
func (s *Shard) readyBy(l *limit) int64 { return s.now.MS - l.patience().Milliseconds() }

// spilled takes in what came out of the tables to be rejected.
func (s *Shard) spilled(c *call, i int, o *table.Outcome) {
	l, list, got := c.spills[i-len(c.lists)].limit, c.spills[i-len(c.lists)].list, &o.Taken[i]
	st := &o.Limits[l.at]
	acts := l.overflows(s.now.Mono) && !l.again && !s.drain.on && st.Used >= c.out.Stances[l.at].Max && !st.Restoring
	rejected := 0
	for _, b := range got.Batches {
		chunk := b.Chunk(list.Tasklist)
		if t := (&taken{list: list, chunk: chunk, stale: c.stale}); t.withhold(s) {
			continue
		}
		if acts && s.longAgo(l, chunk.ReadyAt) {
			all := len(chunk.Triggers)
			chunk.Triggers = s.reject(l, chunk)
			rejected += (all - len(chunk.Triggers)) / ids.TriggerBytes
		}
		if len(chunk.Triggers) > 0 {
			s.arrivals = append(s.arrivals, arrival{Chunk: chunk, list: list})
		}
	}
	for _, h := range got.Heads {
		list.index.Seen(h)
		list.ranks.End(h.Column, list.keepsRanks)
		if h.Empty {
			list.unparkGone(h.Column)
		}
	}
	if rejected == overflowMax { // there may be more
		s.wantOverflow(l)
	}
	s.reconsider(list)
	s.tellUp(list)
}

// reject has the triggers of a chunk rejected. It returns those of partitions that are silent, or for which there is no room.
func (s *Shard) reject(l *limit, c table.Chunk) (left []byte) {
	for i := 0; i < len(c.Triggers); i += ids.TriggerBytes {
		packed := c.Triggers[i : i+ids.TriggerBytes]
		t := ids.TriggerAt(packed, 0)
		at := t.ID.Partition()
		if at >= len(s.lanes) {
			s.fx.Counts.Malformed++
			continue
		}
		lane := s.lanes[at]
		back := c
		back.Triggers = packed
		st := stop{Stop: Stop{Trigger: t, Domain: l.domain.name, Limit: l.Ref, ReadyBy: s.readyBy(l)}, limit: l, back: back}
		if !lane.open || lane.silent || !lane.addStop(st) {
			left = append(left, packed...)
		}
	}
	return left
}
