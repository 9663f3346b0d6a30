package match

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// A limit that is full may have a policy: what waits for its slots is rejected, or its oldest attempts make room. Here it is found out who
// waits for which limit, and since when; history decides. A policy acts once the limit has been full for as long as a trigger is to wait,
// as each call about it has said. It never acts while it is not known what runs, and on no trigger that waits for something else.
//
// Tasks that are to be rejected come out of the tables without slots, oldest first. A task that has not waited for long enough goes back.

const (
	// overflowEvery is how often a limit is looked at at most whose policy is to act.
	overflowEvery = time.Second
	// overflowLooksMax is how many limits a sweep looks at, overflowWantsMax how many columns and tasklists one call takes triggers of that are
	// to be rejected, overflowMax how many triggers of each, and how many attempts of a limit are asked to stop at a time.
	overflowLooksMax, overflowWantsMax, overflowMax = 256, 64, 256
)

// spill is one want for triggers that are to be rejected.
type spill struct {
	limit *limit.Limit
	list  *list
}

// sweepOverflows has the policies act of limits that have been full for long enough.
func (s *Shard) sweepOverflows(d *domain) {
	if d.state != open || s.drain.on { // also while a call is under way: in a busy domain one always is
		return
	}
	var ask []*limit.Limit
	for _, l := range d.NextFull(overflowLooksMax) {
		switch {
		case !l.Overflows(s.now.Mono) || s.now.Mono < l.Over.At:
		case l.Policy() == limit.CancelOldest:
			ask = append(ask, l)
		default:
			s.wantOverflow(l)
		}
	}
	s.askHolders(d, ask)
}

// wantOverflow has a call take triggers that are to be rejected for a limit.
func (s *Shard) wantOverflow(l *limit.Limit) {
	if l.Over.Wanted {
		return
	}
	s.limits.Unread(l)
	l.Over.Wanted = true
	l.Domain.Overflows = append(l.Domain.Overflows, l)
	l.Domain.Work()
}

// wantOverflows has a call take triggers that are to be rejected.
func (s *Shard) wantOverflows(d *domain, c *call) {
	n := 0
	for ; n < len(d.Overflows) && len(c.spills) < overflowWantsMax && c.candidates < callCandidatesMax; n++ {
		l := d.Overflows[n]
		l.Over.Wanted = false
		if s.drain.on || l.Policy() != limit.RejectNewest || !l.Overflows(s.now.Mono) {
			continue
		}
		l.Over.At = s.now.Mono + overflowEvery
		for _, w := range s.waitingFor(l) {
			c.Stand(l)
			w.want.N = overflowMax
			c.out.Wants = append(c.out.Wants, w.want)
			c.spills = append(c.spills, spill{l, w.list})
			c.candidates += len(w.want.Candidates)
		}
	}
	d.Overflows = slices.Delete(d.Overflows, 0, n)
}

// waiting is columns of a tasklist that wait for a limit.
type waiting struct {
	list *list
	want table.Want
}

// waitingFor are the columns that wait for a limit, as far as they are looked at, and have waited for long enough as far as is known. What
// is paused, or waits for a worker, is none of it.
func (s *Shard) waitingFor(l *limit.Limit) (all []waiting) {
	add := func(list *list, candidates []table.Candidate) {
		candidates = slices.DeleteFunc(candidates, func(c table.Candidate) bool {
			return !s.acts(l, list, c.Type, c.Head)
		})
		if len(candidates) > 0 {
			all = append(all, waiting{list, table.Want{Tasklist: list.Tasklist, Candidates: candidates}})
		}
	}
	if l.Of != nil {
		for _, p := range l.Parked[:min(len(l.Parked), overflowWantsMax)] {
			if age, ok := p.List.Index.Age(p.At); ok {
				add(s.listOf(p.List), []table.Candidate{{Column: p.At, Head: age, Most: overflowMax}})
			}
		}
		return all
	}
	for of := range l.InLine() {
		if len(all) >= overflowWantsMax {
			break
		}
		list := s.listOf(of)
		add(list, list.index.CandidatesOf(l.Types, 0, candidatesMax, func(at table.Column) bool {
			return list.TypePath(at.Type).Taken() != l
		}))
	}
	return all
}

// acts tells whether the policy of a limit acts on triggers of a type that are ready since an instant, Unix µs: they are not paused, and a poll waits for them.
func (s *Shard) acts(l *limit.Limit, on *list, typ string, readyAt int64) bool {
	return s.longAgo(l, readyAt) && !on.TypePath(typ).Paused() && on.polledFor(typ)
}

// polledFor tells whether a poll waits for a type here. One of a tasklist with several partitions may wait in any of them.
func (l *list) polledFor(typ string) bool {
	return l.spread || l.queue.Takes(typ) ||
		slices.ContainsFunc(l.queue.Lines(), func(line *pairing.Line[*list, grab.Grant]) bool { return line.First().Accepts(typ) })
}

// longAgo tells whether a trigger that is ready since an instant, Unix µs, has waited for long enough. Where groups take turns it may be younger.
func (s *Shard) longAgo(l *limit.Limit, readyAt int64) bool {
	if readyAt >= fairness.IdleFrom {
		readyAt -= fairness.IdleFrom
	}
	return readyAt/1000 <= s.readyBy(l)
}

// readyBy is since when tasks have to be ready that have waited for long enough for a limit, Unix ms.
func (s *Shard) readyBy(l *limit.Limit) int64 { return s.now.MS - l.Patience().Milliseconds() }

// spilled takes in what came out of the tables to be rejected.
func (s *Shard) spilled(c *call, i int, o *table.Outcome) {
	l, list, got := c.spills[i-len(c.lists)].limit, c.spills[i-len(c.lists)].list, &o.Taken[i]
	st := &o.Limits[l.At]
	acts := l.Overflows(s.now.Mono) && !l.Again && !s.drain.on && c.IsFull(l, o.Limits) && !st.Restoring
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
			list.ForgetParked(h.Column)
		}
	}
	if rejected == overflowMax { // there may be more
		s.wantOverflow(l)
	}
	s.reconsider(list)
	s.tellUp(list)
}

// reject has the triggers of a chunk rejected. It returns those of partitions that are silent, or for which there is no room.
func (s *Shard) reject(l *limit.Limit, c table.Chunk) (left []byte) {
	for i := 0; i < len(c.Triggers); i += ids.TriggerBytes {
		packed := c.Triggers[i : i+ids.TriggerBytes]
		t := ids.TriggerAt(packed, 0)
		if t.ID.Partition() >= s.cfg.Partitions {
			s.fx.Counts.Malformed++
			continue
		}
		back := c
		back.Triggers = packed
		st := grab.StopRequest{Stop: grab.Stop{Trigger: t, Domain: l.Domain.Name, Limit: l.Ref, ReadyBy: s.readyBy(l)}, Limit: l, Back: back}
		if !s.grabs.AddStop(st) {
			left = append(left, packed...)
		}
	}
	return left
}
