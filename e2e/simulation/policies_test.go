package simulation

import (
	"math"
	"reflect"
	"slices"

	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// errTypes are those that workers report, and those of the engine.
var errTypes = []string{"", "a", "b", "timeout", "lost"}

// ownPolicy is one of a task's own, as few attempts as it may have.
func (w *world) ownPolicy() *historysim.Policy {
	p := *policy
	p.MaxAttempts = 1 + w.dice.Int32N(6)
	if w.dice.chance(500) {
		p.MaxDeliveries = 1 + w.dice.Int32N(6)
	}
	p.Jitter = historysim.Jitter(w.dice.IntN(5))
	p.OnLost, p.OnTimeout = historysim.OnLost(w.dice.IntN(4)), historysim.OnTimeout(w.dice.IntN(3))
	if w.dice.chance(200) { // it must not run twice
		p.OnLost, p.OnTimeout = historysim.LostDies, historysim.TimeoutDies
	}
	if w.dice.chance(600) {
		p.Rules = &historysim.Rules{ByError: []historysim.ErrorRule{{
			ErrType: errTypes[1+w.dice.IntN(4)], MaxAttempts: w.dice.Int32N(4), InitialIntervalMS: w.dice.Int64N(500),
			Backoff: float64(w.dice.IntN(3)), MaxIntervalMS: w.dice.Int64N(12_000),
		}}}
		if w.dice.chance(300) {
			p.Rules.NonRetryable = []string{errTypes[1+w.dice.IntN(4)]}
		}
	}
	return &p
}

// notReceived is what the history says of a grant that expired and may never have reached its worker.
const notReceived = "it may never have reached its worker"

// byPolicy holds what a policy promises against the history of a task that has ended: that it is the one that was submitted, that no
// attempt follows one after which none may, and that waits are what it says.
func (c *checker) byPolicy(t *historysim.Task) {
	w, p := c.w, c.w.policyNow(t)
	if !reflect.DeepEqual(t.Policy, p) {
		w.violated("%s ends with the policy %+v, it was submitted with %+v", w.name(t.ID), t.Policy, p)
		return
	}
	if t.Policy.TypeRevision < c.took[t.ID] {
		w.violated("I3: an attempt of %s began under revision %d of its type, and it ends under revision %d", w.name(t.ID), c.took[t.ID], t.Policy.TypeRevision)
	}
	if t.StepsDropped > 0 || p != w.policyOf[t.ID] { // earlier attempts had other terms
		return
	}
	failures, delivered, end, blocked := 0, 0, "", false
	for i := range t.Steps {
		s := &t.Steps[i]
		dies := s.Kind == historysim.StepLost && p.OnLost == historysim.LostDies
		switch s.Kind {
		case historysim.StepStarted:
			if delivered++; end != "" {
				w.violated("attempt %d of %s begins, though %s: %+v", s.Grant, w.name(t.ID), end, *p)
			}
			continue
		case historysim.StepHandedBack:
			if delivered--; s.Message == notReceived && p.OnLost == historysim.LostDies && p.OnTimeout == historysim.TimeoutDies {
				w.violated("attempt %d of %s is handed back, and its worker may have received it: %+v", s.Grant, w.name(t.ID), *p)
			}
			continue
		case historysim.StepRedriven:
			failures, delivered, end = 0, 0, ""
			continue
		case historysim.StepBlocked:
			blocked = true
			continue
		case historysim.StepUpdated, historysim.StepUnblocked:
			if blocked { // it has another attempt
				blocked, end = false, ""
			}
			continue
		case historysim.StepSnoozed:
			if s.DueAt > 0 && s.DueAt <= s.At {
				w.violated("attempt %d of %s is put off by %d ms", s.Grant, w.name(t.ID), s.DueAt-s.At)
			}
		case historysim.StepLost:
			if !dies && p.OnLost != historysim.LostFails {
				break
			}
			fallthrough
		case historysim.StepFailed, historysim.StepTimedOut:
			failures++
			if c.lastOf(s, p, failures) || dies {
				end = "no failure may follow"
			}
			c.waits(t, s, p, failures)
		default:
			continue
		}
		if p.MaxDeliveries > 0 && delivered >= int(p.MaxDeliveries) {
			end = "it was delivered as often as it may"
		}
	}
	if t.State == historysim.Dead && end == "" && t.Lost < historysim.LostMax && !c.mayBeSkipped[t.ID] {
		w.violated("%s is a dead letter after %d failures and %d deliveries: %+v", w.name(t.ID), failures, delivered, *p)
	}
	if failures != int(t.Failures) {
		w.violated("%s ends with %d failures, its history has %d", w.name(t.ID), t.Failures, failures)
	}
}

// lastOf tells whether no attempt may follow a failure.
func (c *checker) lastOf(s *historysim.Step, p *historysim.Policy, failures int) bool {
	most := p.MaxAttempts
	if p.Rules != nil {
		for _, r := range p.Rules.ByError {
			if r.ErrType == s.ErrType && r.MaxAttempts > 0 {
				most = r.MaxAttempts
			}
		}
		if slices.Contains(p.Rules.NonRetryable, s.ErrType) {
			return true
		}
	}
	return failures >= int(most) || s.Kind == historysim.StepTimedOut && p.OnTimeout == historysim.TimeoutDies
}

// askedDelayMS is the shortest delay that workers ask for; no policy has one as long.
const askedDelayMS = 11_000

// waits holds that the wait after a failure is within what the policy says.
func (c *checker) waits(t *historysim.Task, s *historysim.Step, p *historysim.Policy, failures int) {
	wait := s.DueAt - s.At
	if s.DueAt == 0 || wait >= askedDelayMS && s.Kind == historysim.StepFailed {
		return
	}
	first, factor, longest := p.InitialIntervalMS, p.Backoff, p.MaxIntervalMS
	if p.Rules != nil {
		for _, r := range p.Rules.ByError {
			if r.ErrType != s.ErrType {
				continue
			}
			if r.InitialIntervalMS > 0 {
				first = r.InitialIntervalMS
			}
			if r.Backoff > 0 {
				factor = r.Backoff
			}
			if r.MaxIntervalMS > 0 {
				longest = r.MaxIntervalMS
			}
		}
	}
	low, high := 0.9, 1.1
	switch p.Jitter {
	case historysim.JitterFull:
		low, high = 0, 1
	case historysim.JitterEqual:
		low, high = 0.5, 1
	case historysim.JitterNone:
		low, high = 1, 1
	}
	d := min(float64(longest)/high, float64(first)*math.Pow(factor, float64(failures-1))) // no jitter exceeds the longest wait
	low, high = low*d, high*d
	if float64(wait) < low-1 || float64(wait) > high+1 {
		c.w.violated("%s waits %d ms after failure %d, and the policy says %v to %v", c.w.name(t.ID), wait, failures, low, high)
	}
}
