package match

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
)

// answered takes in what history answered.
func (s *Shard) answered(a *question.Answer) {
	l := s.questions.Learn(a, s.now.Mono)
	s.overtaken = s.overtaken || l.Superseded
	s.fx.Counts.Malformed += l.Malformed
	switch l.Kind {
	case question.Bookings: // the entries of these limits are this owner's now
		for i := range a.Running {
			s.limited(a.Running[i].Domain)
		}
	case question.Undelivered:
		for i := range a.Undelivered {
			if g, ok := s.grabs.GrantedBefore(&a.Undelivered[i]); ok && a.Undelivered[i].ReplyTo != "" {
				s.waiting.Find(&a.Undelivered[i], g)
			}
		}
	case question.Holders:
		if d := s.domains[l.Domain]; d != nil {
			d.Policies.Hear(s.policies, l.Round, a.Holders)
		}
	}
}
