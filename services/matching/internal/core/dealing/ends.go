package dealing

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
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
			s.rooms.Arrivals.PutBack(l.Of, e.Chunk())
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

// Withdraw has grabs of a domain matched again that history has not received, and that are of columns whose groups are to be known, and are not.
func (s *Dealing[L]) Withdraw(of *tablecall.Tables[L]) {
	ends := s.rooms.Grabs.Withdraw(func(r *grab.Request[L]) bool {
		return s.cfg.Tables(r.From.List) == of && r.From.List.UnknownGroups(r.From.Column)
	})
	for i := range ends {
		ends[i].Again = true
	}
	s.End(ends)
}

// Pause releases the triggers of a domain that may be of groups that are paused. History sends those that are not again.
func (s *Dealing[L]) Pause(of *tablecall.Tables[L], groups map[string]bool) {
	paused := func(at table.Column) bool { return at.Group == "" || groups[at.Group] }
	of.UnreadAll()
	s.rooms.Arrivals.All = s.rooms.Arrivals.Release(s.rooms.Arrivals.All, func(a *arrival.Arrival[L]) bool { return s.cfg.Tables(a.List) == of && a.Unknown() })
	of.ReleasePaused(paused)
	s.End(s.rooms.Grabs.Withdraw(func(r *grab.Request[L]) bool { return s.cfg.Tables(r.From.List) == of && paused(r.From.Column) }))
	s.rooms.Grabs.ForgetAside(func(c *table.Chunk) bool { return c.Domain == of.Name && paused(c.Column) })
	s.rooms.Grabs.DropStops(of.Domain, paused)
	of.ClearPaused(groups)
	of.Retrigger()
}

// HandOver reports to history the attempts that no worker has, and what has been delivered.
func (s *Dealing[L]) HandOver() {
	for _, st := range s.rooms.Grabs.HandOver(func(st *grab.StopRequest) bool {
		return s.cfg.Source(s.cfg.Find(st.Back.Tasklist)).TypePath(st.Back.Type).Paused()
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

// returnStop puts back a trigger that was to be rejected, unless it may be of a group that is paused.
func (s *Dealing[L]) returnStop(st *grab.StopRequest) {
	switch {
	case st.Displace:
	case st.Stale && st.Back.Group == "":
		s.cfg.RetriggerDomain(st.Limit.Domain.Name)
	default:
		s.rooms.Arrivals.PutBack(s.cfg.Find(st.Back.Tasklist), st.Back)
	}
}
