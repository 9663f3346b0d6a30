package match

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// give gives the triggers of a chunk to waiting polls, first come first served. It returns those
// for which there is none, and how many grabs it made. Starts of rates were taken for all of them.
func (s *Shard) give(l *list, c table.Chunk, path *limit.Path, rates []*limit.Limit) (left []byte, n int) {
	if !l.queue.Names(c.Type) {
		return c.Triggers, 0
	}
	from := &origin{List: l, Chunk: c, Rates: rates, At: s.now.Mono}
	from.Step, from.Triggers = 0, nil
	from.Path, from.Scarce = path.Refs, path.Find((*limit.Limit).Scarce) != nil
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
			if room--; room == 0 {
				p.LeaveLine()
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
	if path.Holds(limit.MemberOf(t)) { // it runs: an owner before has grabbed it
		s.fx.Counts.Doubles++
		return false
	}
	switch s.grabs.Ask(request{Trigger: t, Poll: p, From: from}, packed) {
	case grab.Gathered:
		path.Hold(limit.MemberOf(t))
		p.Pending++
		p.Asked++
		from.List.undecided++
		return true
	case grab.Malformed:
		s.fx.Counts.Malformed++
	case grab.Duplicate:
		s.fx.Counts.Doubles++
	case grab.SetAside:
		from.List.source.Ranks.Aside(from.Column, from.Rank)
	}
	return false
}

// endAll does what follows from the ends of grabs. A slot stays in use if the attempt is known to run: an owner before has grabbed it.
func (s *Shard) endAll(all []ended) {
	for i := range all {
		e := &all[i]
		l, p, m := e.From.List, e.Poll, limit.MemberOf(e.Trigger)
		if e.Detach {
			s.waiting.Detach(p)
		}
		if e.Over {
			l.undecided--
		}
		if e.Free {
			l.Unhold(e.From.Column, m)
			s.limits.Unstart(e.From.Rates, e.From.Starts(), e.From.At)
		}
		if e.Aside {
			l.source.Ranks.Aside(e.From.Column, e.From.Rank)
		}
		if e.Again {
			s.arrivals.PutBack(l, e.Chunk())
		}
		if e.Granted {
			l.Granted(e.From.Column, m, s.now.Mono, e.DeadlineMS)
			s.waiting.Grant(p, e.Grant)
		}
	}
}

// listen finds out which partitions are silent, and acts on it.
func (s *Shard) listen() {
	found := s.grabs.Listen()
	s.endAll(found.Ends)
	for _, c := range found.Back {
		l := s.list(c.Tasklist)
		l.source.Ranks.Back(c.Column)
		s.arrivals.PutBack(l, c)
	}
	for _, p := range found.Lost {
		s.questions.Retrigger(p, "")
	}
}

// decide applies history's answer to one batch, or to a part of it.
func (s *Shard) decide(v *grab.Verdicts) {
	out := s.grabs.Decide(v)
	s.endAll(out.Ends)
	for i := range out.Stops {
		s.stopped(&out.Stops[i])
	}
	s.overtaken = s.overtaken || out.Superseded
}

// handOver reports to history the attempts that no worker has, and what has been delivered.
func (s *Shard) handOver() {
	s.fx.Prove = s.waiting.Confirm() || s.tree.Unproven()
	for _, st := range s.grabs.HandOver(func(st *grab.StopRequest) bool {
		return s.list(st.Back.Tasklist).TypePath(st.Back.Type).Paused()
	}) {
		s.returnStop(&st)
	}
}

// returnStop puts back a trigger that was to be rejected, unless it may be of a group that is paused.
func (s *Shard) returnStop(st *grab.StopRequest) {
	switch {
	case st.Displace:
	case st.Stale && st.Back.Group == "":
		s.sendAgain(st.Limit.Domain.Name)
	default:
		s.arrivals.PutBack(s.list(st.Back.Tasklist), st.Back)
	}
}
