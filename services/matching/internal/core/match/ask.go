package match

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
)

// answered takes in what history answered.
func (s *Shard) answered(a *question.Answer) {
	l := s.questions.Learn(a, s.now.Mono)
	s.overtaken = s.overtaken || l.Superseded
	s.fx.Counts.Malformed += l.Malformed
	switch l.Kind {
	case question.Bookings:
		s.booked(a.Running)
	case question.Undelivered:
		s.undelivered(a.Undelivered)
	case question.Holders:
		if d := s.domains[l.Domain]; d != nil {
			for _, st := range d.policies.Hear(s.policyTurn(), l.Round, a.Holders, s.drain.on) {
				s.addStop(st)
			}
		}
	}
}

// booked learns of the domains in which owners before this have booked: the entries of their limits are
// this owner's now.
func (s *Shard) booked(running []limit.Running) {
	seen := map[string]bool{}
	for i := range running {
		name := running[i].Domain
		if seen[name] {
			continue
		}
		if seen[name] = true; s.domains[name] == nil && len(s.catalog.Limits(name)) > 0 {
			s.domain(name)
		}
	}
}

// sendAgain has history send all triggers of a domain again.
func (s *Shard) sendAgain(name string) {
	if d := s.domains[name]; d != nil {
		d.Retrigger()
		return
	}
	s.questions.RetriggerAll(name)
}
