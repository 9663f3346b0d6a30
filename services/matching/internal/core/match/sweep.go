package match

import (
	"cmp"
	"time"
)

// sweep does what no message brings about. Where there is nothing to look after, it is
// not due again for long: an idle shard sleeps.
func (s *Shard) sweep() {
	s.sweepAt = s.now.Mono + s.sweepIn()
	s.grabs.Resend()
	for _, d := range s.inOrder {
		s.sweepDomain(d)
	}
	s.forget()
}

// sweepIn is how long it takes until something may become due.
func (s *Shard) sweepIn() time.Duration {
	if s.tree.Watchful() || s.questions.Len() > 0 || s.grabs.Busy() {
		return sweepEvery
	}
	for _, d := range s.inOrder {
		if !d.Open { // what waits in one that is open waits for a call, or for answers
			return sweepEvery
		}
		if d.Watchful() {
			return sweepEvery
		}
	}
	if s.waiting.Watchful() {
		return cmp.Or(s.cfg.PollsEvery, sweepEvery)
	}
	return idleAfter
}

// conclude tells when to step next.
func (s *Shard) conclude(in *Inputs) {
	s.fx.Counts.WouldWait, s.fx.Counts.Audited = s.limits.Done.WouldWait, s.limits.Done.Audited
	s.fx.Counts.WaitingPolls = int64(s.waiting.Len())
	// Polls that were answered at once leave tasklists to be forgotten, calls leave entries to be shown again.
	next := sweepEvery
	if len(in.Polls) == 0 && len(in.Outcomes) == 0 {
		next = s.sweepIn()
	}
	s.sweepAt = min(s.sweepAt, s.now.Mono+next)
	if len(s.arrivals.All)+s.calls.Busy()+len(s.limits.Slack) > 0 && !s.drain.done {
		s.fx.Wake = max(s.now.Mono, 1) // 0 means never
		return
	}
	w := s.tree.Wake(s.limits.Wake(s.grabs.Wake(s.waiting.Wake(s.sweepAt))))
	if at, ok := s.openAt(); ok {
		w = min(w, at)
	}
	if s.drain.on {
		w = min(w, s.drain.end)
	}
	s.fx.Wake = max(w, s.now.Mono, 1)
}
