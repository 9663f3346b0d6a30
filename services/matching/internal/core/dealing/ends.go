package dealing

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
)

// Decide applies history's answer to one batch, or to a part of it. superseded: a newer owner serves the shard.
func (s *Dealing[L]) Decide(v *grab.Verdicts) (superseded bool) {
	out := s.rooms.Grabs.Decide(v)
	s.End(out.Ends)
	for i := range out.Stops {
		s.stopped(&out.Stops[i])
	}
	return out.Superseded
}

// End does what follows from the ends of grabs. A slot stays in use if the attempt is known to run: an owner before has grabbed it.
func (s *Dealing[L]) End(all []grab.End[L]) {
	for i := range all {
		e := &all[i]
		l, p, m := s.cfg.Source(e.From.List), e.Poll, limit.MemberOf(e.Trigger)
		if e.Detach {
			s.rooms.Waiting.Detach(p)
		}
		if e.Over {
			l.Undecided--
		}
		if e.Free {
			l.Unhold(e.From.Column, m)
			s.rooms.Limits.Unstart(e.From.Rates, e.From.Starts(), e.From.At)
		}
		if e.Aside {
			l.Ranks.Aside(e.From.Column, e.From.Rank)
		}
		if e.Again {
			s.putBack(l.Of, e.Chunk(), e.From.Life)
		}
		if e.Granted {
			l.Granted(e.From.Column, m, s.now, e.DeadlineMS)
			s.rooms.Waiting.Grant(p, e.Grant)
		}
	}
}

// Listen finds out which partitions are silent, and acts on it.
func (s *Dealing[L]) Listen() {
	found := s.rooms.Grabs.Listen()
	s.End(found.Ends)
	for _, c := range found.Back {
		l := s.cfg.Find(c.Tasklist)
		s.cfg.Source(l).Ranks.Back(c.Column)
		s.rooms.Arrivals.PutBack(l, c)
	}
	for _, p := range found.Lost {
		s.cfg.Retrigger(p)
	}
}

// StartOver releases the triggers of a domain that history has not received, wherever they are, and has history send all again: it is not known which of
// them may start, or which groups they are of.
func (s *Dealing[L]) StartOver(of *tablecall.Tables[L]) {
	mine := func(l L) bool { return s.cfg.Tables(l) == of }
	of.StartOver()
	s.rooms.Arrivals.Release(mine)
	s.End(s.rooms.Grabs.Withdraw(func(r *grab.Request[L]) bool { return mine(r.From.List) }))
	s.rooms.Grabs.ForgetAside(of.Name)
}

// putBack has a chunk matched again. If its domain has started over since it was taken, history is to send its triggers again.
func (s *Dealing[L]) putBack(l L, c table.Chunk, life uint64) {
	if t := s.cfg.Tables(l); t.Life != life {
		t.Retrigger()
		return
	}
	s.rooms.Arrivals.PutBack(l, c)
}

// HandOver reports to history the attempts that no worker has, and what has been delivered.
func (s *Dealing[L]) HandOver() {
	for _, st := range s.rooms.Grabs.HandOver(func(st *grab.StopRequest) bool {
		l := s.cfg.Find(st.Back.Tasklist)
		return s.cfg.Tables(l).Life != st.Life || s.cfg.Source(l).TypePath(st.Back.Type).Pause != nil
	}) {
		s.returnStop(&st)
	}
}

// Leave gives the shard up: what history has not received goes back to the tables.
func (s *Dealing[L]) Leave() {
	s.leaving = true
	ends, aside, stops := s.rooms.Grabs.Leave()
	s.End(ends)
	for _, c := range aside {
		s.rooms.Arrivals.PutBack(s.cfg.Find(c.Tasklist), c)
	}
	for i := range stops {
		s.returnStop(&stops[i])
	}
}

// AddStop has a task or an attempt stopped; false if it is refused.
func (s *Dealing[L]) AddStop(st grab.StopRequest) bool {
	if !st.Displace {
		st.Life = s.cfg.Tables(s.cfg.Find(st.Back.Tasklist)).Life
	}
	asked := s.rooms.Grabs.AddStop(st)
	if asked == grab.Malformed {
		s.counts.Malformed++
	}
	return asked != grab.Dropped
}

// stopped applies one verdict about a stop.
func (s *Dealing[L]) stopped(st *grab.Stopped) {
	overflow.Stopped(st, s.now)
	switch {
	case st.WaitsOn():
		s.returnStop(&st.StopRequest)
	case st.Refused != "":
	case st.Displace:
		s.counts.Displaced++
	default:
		s.counts.Rejected++
	}
}

// returnStop puts back a trigger that was to be rejected.
func (s *Dealing[L]) returnStop(st *grab.StopRequest) {
	if !st.Displace {
		s.putBack(s.cfg.Find(st.Back.Tasklist), st.Back, st.Life)
	}
}
