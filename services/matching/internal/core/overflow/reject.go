package overflow

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// Every is how often a limit is looked at at most whose policy is to act.
	Every = time.Second
	// limitsMax is how many limits a sweep looks at, wantsMax how many columns and tasklists one call takes triggers of that are
	// to be rejected, Max how many triggers of each, and how many attempts of a limit are asked to stop at a time. candidatesMax is how many
	// columns of a tasklist are looked at.
	limitsMax, wantsMax, Max, candidatesMax = 256, 64, 256, 32
)

// Turn is the time of a turn, and what policies need of the shard.
type Turn struct {
	// Now is on the clock of the turn, MS the wall clock in Unix ms.
	Now time.Duration
	MS  int64
	// Leaving: the shard is given up, so no policy acts any more.
	Leaving bool
	// Add adds a request to stop a task or an attempt; false if it is refused.
	Add func(st grab.StopRequest) bool
	// Polled reports whether a poll waits for a type of a tasklist.
	Polled func(l *limit.List, typ string) bool
}

// Policies are those of a domain. The zero value has nothing to do.
type Policies struct {
	// wanted are limits of which a call is to take triggers that are to be rejected.
	wanted []*limit.Limit
	// round asks whose attempts are to make room.
	round *Round
}

// Sweep has the policies act of limits of a domain that have been full for long enough. If attempts are to make room, it returns the question
// to all partitions, of which there are so many; else nil.
func (s *Policies) Sweep(t Turn, d *limit.Domain, partitions int) *Round {
	if !d.Open || t.Leaving { // also while a call is under way: in a busy domain one always is
		return nil
	}
	var ask []*limit.Limit
	for _, l := range d.NextFull(limitsMax) {
		switch {
		case !l.Overflows(t.Now) || t.Now < l.Over.At:
		case l.Policy() == limit.CancelOldest:
			ask = append(ask, l)
		default:
			s.want(l)
		}
	}
	return s.ask(t, ask, partitions)
}

// want has a call take triggers that are to be rejected for a limit.
func (s *Policies) want(l *limit.Limit) {
	if l.Over.Wanted {
		return
	}
	l.Domain.Unread(l)
	l.Over.Wanted = true
	s.wanted = append(s.wanted, l)
	l.Domain.Work()
}

// Want is a want for triggers that are to be rejected for a limit.
type Want struct {
	table.Want
	Limit *limit.Limit
	List  *limit.List
}

// Wants are those of a call that looks at most so many columns.
func (s *Policies) Wants(t Turn, c *limit.Call, most int) (all []Want) {
	n, looks := 0, 0
	for ; n < len(s.wanted) && len(all) < wantsMax && looks < most; n++ {
		l := s.wanted[n]
		l.Over.Wanted = false
		if t.Leaving || l.Policy() != limit.RejectNewest || !l.Overflows(t.Now) {
			continue
		}
		l.Over.At = t.Now + Every
		for _, w := range t.waitingFor(l) {
			c.Stand(l)
			w.N = Max
			looks += len(w.Candidates)
			all = append(all, w)
		}
	}
	s.wanted = slices.Delete(s.wanted, 0, n)
	return all
}

// waitingFor are the columns that wait for a limit, as far as they are looked at, and have waited for long enough as far as is known. What
// is paused, or waits for a worker, is none of it.
func (t Turn) waitingFor(l *limit.Limit) (all []Want) {
	add := func(of *limit.List, candidates []table.Candidate) {
		candidates = slices.DeleteFunc(candidates, func(c table.Candidate) bool { return !t.acts(l, of, c.Type, c.Head) })
		if len(candidates) > 0 {
			all = append(all, Want{Want: table.Want{Tasklist: of.Tasklist, Candidates: candidates}, Limit: l, List: of})
		}
	}
	if l.Of != nil {
		for _, p := range l.Parked[:min(len(l.Parked), wantsMax)] {
			if age, ok := p.List.Index.Waits(p.At); ok {
				add(p.List, []table.Candidate{{Column: p.At, Head: age, Most: Max}})
			}
		}
		return all
	}
	for of := range l.InLine() {
		if len(all) >= wantsMax {
			break
		}
		add(of, of.Index.Candidates(l.Types, 0, candidatesMax, func(at table.Column) bool { return of.TypePath(at.Type).Taken() != l }))
	}
	return all
}

// acts reports whether the policy of a limit acts on triggers of a type that are ready since an instant, Unix µs: they are not paused, and a poll waits for them.
func (t Turn) acts(l *limit.Limit, of *limit.List, typ string, readyAt int64) bool {
	return t.longAgo(l, readyAt) && of.TypePath(typ).Pause == nil && t.Polled(of, typ)
}

// longAgo reports whether a trigger that is ready since an instant, Unix µs, has waited for long enough. Where groups take turns it may be younger.
func (t Turn) longAgo(l *limit.Limit, readyAt int64) bool {
	if readyAt >= fairness.IdleFrom {
		readyAt -= fairness.IdleFrom
	}
	return readyAt/1000 <= t.readyBy(l)
}

// readyBy is since when tasks have to be ready that have waited for long enough for a limit, Unix ms.
func (t Turn) readyBy(l *limit.Limit) int64 { return t.MS - l.Patience().Milliseconds() }

// Reject has triggers rejected that a call took for a limit, if it was full all the time until then. It returns the chunks of triggers that go back.
func (s *Policies) Reject(t Turn, l *limit.Limit, c *limit.Call, states []table.LimitState, chunks []table.Chunk) (back []table.Chunk) {
	acts := !t.Leaving && l.Overflows(t.Now) && !l.Again && c.IsFull(l, states) && !states[l.At].Restoring
	rejected := 0
	for _, chunk := range chunks {
		if acts && t.longAgo(l, chunk.ReadyAt) {
			all := len(chunk.Triggers)
			chunk.Triggers = t.reject(l, chunk)
			rejected += (all - len(chunk.Triggers)) / ids.TriggerBytes
		}
		if len(chunk.Triggers) > 0 {
			back = append(back, chunk)
		}
	}
	if rejected == Max { // there may be more
		s.want(l)
	}
	return back
}

// reject has the triggers of a chunk rejected. It returns those that are refused.
func (t Turn) reject(l *limit.Limit, c table.Chunk) (left []byte) {
	for packed := range slices.Chunk(c.Triggers, ids.TriggerBytes) {
		back := c
		back.Triggers = packed
		stop := grab.Stop{Trigger: ids.TriggerAt(packed, 0), Domain: l.Domain.Name, Limit: l.Ref, ReadyBy: t.readyBy(l)}
		if !t.Add(grab.StopRequest{Stop: stop, Limit: l, Back: back}) {
			left = append(left, packed...)
		}
	}
	return left
}

// Stopped takes in what history decided about a stop. One that has begun, or is over, is left alone; a task that is younger than it seemed is tried
// again later.
func Stopped(st *grab.Stopped, now time.Duration) {
	switch {
	case st.Refused == "":
		st.Limit.Ended(st.Displace, now)
	case st.TooYoung():
		st.Limit.Over.At = now + max(st.Limit.Patience(), Every)
	}
}
