package simulation

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// typeChange is what a task type says since a time.
type typeChange struct {
	since time.Duration
	terms *historysim.Terms
}

// allFields are all fields of a policy.
const allFields = ^historysim.Fields(0)

// changeType gives a type another policy. Its times stay, by which matching's leases are checked.
func (s *sim) changeType() {
	at := s.match.someTask()
	s.changes++
	p := *policy
	p.MaxAttempts, p.InitialIntervalMS, p.MaxIntervalMS = 50+s.dice.Int32N(10), 50+s.dice.Int64N(200), 1000+s.dice.Int64N(2000)
	p.Jitter, p.OfType, p.TypeRevision = historysim.Jitter(s.dice.IntN(5)), allFields, s.changes
	of := historysim.TypeName{Domain: at.domain, Type: at.typ}
	s.types[of] = append(s.types[of], typeChange{s.now, &historysim.Terms{Of: of, Policy: &p}})
	s.say("world", "revision %d of type %s/%s: %d attempts", s.changes, of.Domain, of.Type, p.MaxAttempts)
}

// termsAt are those of a type at a time; nil = it has no settings.
func (s *sim) termsAt(of historysim.TypeName, at time.Duration) (last *historysim.Terms) {
	for _, c := range s.types[of] {
		if c.since <= at {
			last = c.terms
		}
	}
	return last
}

// Terms is part of historysim.Host: processes hear of a change at different times.
func (p *proc) Terms(of historysim.TypeName) *historysim.Terms {
	return p.w.termsAt(of, p.w.now-p.behind)
}

// ofType lets a task that is submitted follow its type: in all but its attempts if it has a policy of its own.
func (w *world) ofType(t *historysim.Task, own bool) {
	if !w.plan.has(typeChanges) {
		return
	}
	p := *t.Policy
	if p.OfType = allFields; own {
		p.OfType = historysim.FieldInitialInterval | historysim.FieldMaxInterval | historysim.FieldJitter
	}
	t.Policy = under(&p, w.termsAt(historysim.TypeName{Domain: t.Domain, Type: t.Type}, w.now))
}

// under is what a policy is when a task has taken the terms of its type.
func under(p *historysim.Policy, of *historysim.Terms) *historysim.Policy {
	if of == nil || of.Policy.TypeRevision <= p.TypeRevision || p.OfType == 0 {
		return p
	}
	now := *p
	now.TypeRevision = of.Policy.TypeRevision
	if p.OfType&historysim.FieldMaxAttempts != 0 {
		now.MaxAttempts = of.Policy.MaxAttempts
	}
	now.InitialIntervalMS, now.MaxIntervalMS, now.Jitter = of.Policy.InitialIntervalMS, of.Policy.MaxIntervalMS, of.Policy.Jitter
	return &now
}

// policyNow is the policy that a task must have: the one that it was submitted with, under some terms of its type.
func (w *world) policyNow(t *historysim.Task) *historysim.Policy {
	p := w.policyOf[t.ID]
	for _, c := range w.types[historysim.TypeName{Domain: t.Domain, Type: t.Type}] {
		if c.terms.Policy.TypeRevision == t.Policy.TypeRevision {
			return under(p, c.terms)
		}
	}
	return p
}
