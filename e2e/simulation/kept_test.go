package simulation

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// tried is a try of an attempt that has failed, whose worker would try again in place: it knew of so many failures.
type tried struct {
	token    ids.Token
	failures int32
}

// keepAsked notes that a worker asks to keep an attempt.
func (c *checker) keepAsked(e *historysim.Event) {
	if e.Kind != historysim.Failed || !e.Keep {
		return
	}
	if c.keeps[e.ID] == nil {
		c.keeps[e.ID] = map[tried]bool{}
	}
	c.keeps[e.ID][tried{e.Fence, e.Failures}] = true
}

// kept holds that only who asks for it keeps an attempt, whose policy allows that, and not past a rate; and that its failure is counted.
func (c *checker) kept(e *historysim.Event, v *historysim.Verdict, seq uint64) {
	if v.RetryAt > 0 && (!e.Keep || c.w.policyOf[e.ID].PinnedForMS == 0 || ids.Rated(e.Fence.Nonce) || v.Failures <= e.Failures) {
		c.w.violated("attempt %d of %s is kept by event %d: %+v %+v, %+v", e.Fence.Version, c.w.name(e.ID), seq, *e, *v, *c.w.policyOf[e.ID])
	}
}

// inPlace holds that no attempt begins before another one is over, one that is kept, too; that each is kept as often as its worker asked for, after
// failures that are counted once; and for no longer than its policy allows.
func (c *checker) inPlace(t *historysim.Task) {
	if t.StepsDropped > 0 {
		return
	}
	running, since, tries := false, int64(0), 0
	for i := range t.Steps {
		s := &t.Steps[i]
		switch {
		case s.Kind == historysim.StepStarted:
			if running {
				c.w.violated("I4: attempt %d of %s begins, and the one before is not over", s.Grant, c.w.name(t.ID))
			}
			running, since = true, 0
		case s.Kind == historysim.StepFailed && s.Kept:
			if since == 0 {
				since = s.At
			}
			if tries++; !running || s.DueAt <= s.At || s.DueAt-since > t.Policy.PinnedForMS {
				c.w.violated("attempt %d of %s is kept until %d, and failed first at %d: %+v", s.Grant, c.w.name(t.ID), s.DueAt, since, *t.Policy)
			}
		case s.Kind != historysim.StepUpdated && s.Kind != historysim.StepCancelRequested:
			running = false
		}
	}
	if asked := len(c.keeps[t.ID]); tries != int(t.Kept().Tries) || tries > asked {
		c.w.violated("%s was tried again in place %d times, it remembers %d, and its workers asked for %d", c.w.name(t.ID), tries, t.Kept().Tries, asked)
	}
}

// keptAt is when the next try begins of an attempt whose failure the log stored at a time; 0 = it was not kept.
func (w *world) keptAt(id ids.TaskID, at int64) int64 {
	if t := w.archived[id]; t != nil {
		for i := range t.Steps {
			if s := &t.Steps[i]; s.Kept && s.At == at {
				return s.DueAt
			}
		}
	}
	return 0
}
