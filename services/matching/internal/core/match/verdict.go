package match

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
)

// decideAll applies history's answer to one batch, or to a part of it.
func (s *Shard) decideAll(v *Verdicts) {
	if v.Partition < 0 || v.Partition >= len(s.lanes) {
		return
	}
	l := s.lanes[v.Partition]
	l.heardAt = s.now.Mono
	b := l.find(v.Batch)
	if b == nil {
		return // repeated
	}
	for i := range v.All {
		if v.All[i].Fenced {
			s.overtaken = true
			return
		}
		switch at := v.First + i; {
		case b.out.Fence:
			s.fenced(b, &v.All[i])
		case at < 0:
		case at < len(b.grabs):
			s.decide(b, at, &v.All[i])
		case at < len(b.backs):
			s.handedBack(b, at, &v.All[i])
		case at < len(b.stops):
			s.stopped(b, at, &v.All[i])
		}
	}
	if b.left == 0 {
		l.close(b, s.now.Mono)
		if len(b.grabs) > 0 {
			s.fx.Decided = append(s.fx.Decided, s.now.Mono-b.firstAt)
		}
	}
}

// fenced opens the way to a partition: nothing of an older owner follows.
func (s *Shard) fenced(b *batch, v *Verdict) {
	if v.Refused != "" || b.left == 0 {
		return // it is sent again
	}
	b.left = 0
	b.lane.open = true
	s.start.fence(s.now.Mono)
}

// decide applies one verdict about a grab.
func (s *Shard) decide(b *batch, i int, v *Verdict) {
	g := &b.grabs[i]
	if g.decided {
		return
	}
	g.decided = true
	b.left--
	b.lane.undecided--
	g.from.list.undecided--
	if len(v.Trace) > 0 {
		s.traced(b, g, v)
	}
	p := g.poll
	if !g.detached {
		p.Pending--
		s.polls.Touch(p)
	}
	if v.Refused != "" {
		s.fx.Counts.GrabsRefused++
		g.full = fault.Code(v.Refused) == fault.ResourceExhausted
		if passes(fault.Code(v.Refused)) && b.copies > 1 {
			g.unsure = true
			b.unconfirmed++
			b.takeBack(i, true)
			return
		}
		s.unhold(g)
		g.unstart(s)
		if passes(fault.Code(v.Refused)) {
			s.doubles.Forget(g.trigger)
		}
		g.passOn(s)
		return
	}
	s.fx.Counts.Granted++
	b.granted++
	b.unconfirmed++
	g.from.list.Granted(g.from.Column, limit.MemberOf(g.trigger), s.now.Mono, v.DeadlineMS)
	if p.Answered || len(p.Granted) >= p.Max {
		b.takeBack(i, true)
		return
	}
	p.Granted = append(p.Granted, grant{batch: b, i: i, task: v.Task})
	if len(p.Granted) == 1 {
		s.polls.Look(p, min(s.now.Mono+grantedWait, p.Until+pollGrace))
	}
	s.polls.Touch(p)
}

// passes tells whether a grab that was refused may be granted another time.
func passes(code fault.Code) bool { return code != fault.Stale && code != fault.NotFound }

// passOn matches the trigger of a refused grab again if only the answer of its poll was full.
func (g *grab) passOn(s *Shard) {
	if g.full {
		s.arrivals = append(s.arrivals, arrival{Chunk: g.chunk(), list: g.from.list})
	}
}

// doubtless: all copies of a grab are decided, and none of them runs.
func (s *Shard) doubtless(g *grab) {
	s.unhold(g)
	s.doubles.Forget(g.trigger)
	g.passOn(s)
}

// handedBack applies one verdict about a hand-back. Whatever it says, history knows,
// unless it says that it could not look.
func (s *Shard) handedBack(b *batch, i int, v *Verdict) {
	h := &b.backs[i]
	if h.done {
		return
	}
	h.done = true
	b.left--
	switch {
	case fault.Code(v.Refused).Retryable():
		h.batch.takeBack(h.i, h.confirms)
	case h.confirms:
		h.batch.unconfirmed--
		if g := &h.batch.grabs[h.i]; g.unsure {
			s.doubtless(g)
		}
	}
}
