package match

import (
	"slices"
)

// leave gives the shard up.
func (s *Shard) leave() {
	if s.drain.on {
		return
	}
	s.drain = drain{on: true, end: s.now.Mono + drainTimeout}
	s.policies.Leaving = true
	s.dealing.Leave()
	s.limits.Draining = true
	s.calls.Leave()
	for _, d := range s.inOrder {
		d.Domain.Leave()
	}
	s.waiting.Leave()
}

// drained ends the shard when nothing is under way any more, or it has taken too long. Grabs without a verdict are handed back then: if history
// grants them yet, no worker takes them.
func (s *Shard) drained() {
	switch underWay := s.waiting.UnderWay() || s.grabs.UnderWay() || slices.ContainsFunc(s.inOrder, func(d *domain) bool { return d.UnderWay() }); {
	case !s.drain.on:
		return
	case s.now.Mono >= s.drain.end:
		s.waiting.Force()
		s.grabs.Force()
		s.dealing.HandOver()
	case underWay:
		return
	}
	s.drain.done, s.fx.Drained = true, true
}

// ended answers what comes in after the end.
func (s *Shard) ended(in *Inputs) {
	s.fx.Drained, s.fx.Overtaken = s.drain.done, s.overtaken
	for i := range in.Polls {
		s.fx.Answers = append(s.fx.Answers, in.Polls[i].Empty())
	}
	s.fx.Wake = s.now.Mono + idleAfter
}
