package match

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
)

// retrigger has all triggers of a domain sent again, or of all domains.
func (s *Shard) retrigger(partition int, domain string) {
	s.questions.AddOnce(asked{Kind: AskRetrigger, Partition: partition, Domain: domain})
}

// retriggerAll does so in all partitions.
func (s *Shard) retriggerAll(domain string) {
	for p := range s.cfg.Partitions {
		s.retrigger(p, domain)
	}
}

// ask asks what is due. Counts must be asked for behind the fence.
func (s *Shard) ask() {
	for _, q := range s.questions.Due(s.now.Mono, func(q *asked) (drop, ready bool) {
		return q.Kind == AskRunning && q.About.count.Pointless(), s.grabs.MayAsk(q.Partition, q.About.after)
	}) {
		a := Ask{ID: q.ID, Kind: q.Kind, Partition: q.Partition, Domain: q.Domain, Types: q.About.types}
		if r := q.About.round; r != nil {
			a.Holders = r.Queries
		}
		s.fx.Asks = append(s.fx.Asks, a)
	}
}

// answered takes in what history answered.
func (s *Shard) answered(o *AskOutcome) {
	q := s.questions.Open(o.Ask.ID)
	if q == nil {
		return
	}
	if o.Overtaken {
		s.overtaken = true
		return
	}
	if !s.questions.End(q, o.Failed, s.now.Mono) {
		return
	}
	switch q.Kind {
	case AskBookings:
		s.booked(o.Held)
	case AskUndelivered:
		s.undelivered(o.Undelivered)
	case AskRunning:
		s.fx.Counts.Malformed += q.About.count.Compare(q.Partition, q.AskedAt, o.Held)
	case AskHolders:
		if d := s.domains[q.Domain]; d != nil {
			for _, st := range d.policies.Hear(s.policyTurn(), q.About.round, o.Holders, s.drain.on) {
				s.addStop(st)
			}
		}
	}
}

// booked learns of the domains in which owners before this have booked: the entries of their limits are
// this owner's now.
func (s *Shard) booked(held []limit.Running) {
	seen := map[string]bool{}
	for i := range held {
		name := held[i].Domain
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
	s.retriggerAll(name)
	if d := s.domains[name]; d != nil {
		s.work(d)
	}
}
