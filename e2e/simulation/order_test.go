package simulation

import (
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// orderKey names the tasks that run one at a time.
type orderKey struct{ domain, key string }

// inOrder holds that no attempt of a task with an order key begins before each task of the key with an earlier place has ended, or waits for its time:
// it has another place when it comes back.
func (c *checker) inOrder(t *historysim.Task) {
	o := t.Order()
	if o == nil || c.w.plan.has(steppingServer) {
		return // the times of the log tell what came first
	}
	key := orderKey{t.Domain, o.Key}
	for _, other := range c.keyed[key] {
		first, second := t, other
		if historysim.PlaceBefore(other, t) {
			first, second = other, t
		}
		if endedParked(first) {
			continue
		}
		for i := range second.Steps {
			if s := &second.Steps[i]; s.Kind == historysim.StepStarted && s.At < first.FinishedAt {
				c.w.violated("attempt %d of %s begins at %d, and %s, which is before it in the line of key %v, ends at %d",
					s.Grant, c.w.name(second.ID), s.At, c.w.name(first.ID), key, first.FinishedAt)
			}
		}
	}
	c.keyed[key] = append(c.keyed[key], t)
}

// endedParked tells whether t ended while it waited for its time.
func endedParked(t *historysim.Task) (parked bool) {
	for i := range t.Steps {
		switch t.Steps[i].Kind {
		case historysim.StepParked:
			parked = true
		case historysim.StepFired:
			parked = false
		}
	}
	return parked
}
