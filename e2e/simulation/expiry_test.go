package simulation

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// inTime holds that what has no time limit does not expire, that what has one does not before, and that no attempt begins
// when the time is over.
func (c *checker) inTime(t *historysim.Task) {
	if t.Group() != c.w.groupOf[t.ID] && !c.askedForGroup(t) {
		c.w.violated("%s ends with the group %q, it was submitted with %q", c.w.name(t.ID), t.Group(), c.w.groupOf[t.ID])
	}
	if t.Cost() != c.w.costOf[t.ID] {
		c.w.violated("%s ends with a cost of %d, it was submitted with %d", c.w.name(t.ID), t.Cost(), c.w.costOf[t.ID])
	}
	if u, at := t.Unique(), c.w.keyAt[t.ID]; t.Redriven().Count == 0 && (u != nil) != (at != nil) || u != nil && (u.Key != t.ID.String() || !slices.Contains(at, u.Seq)) {
		c.w.violated("%s ends with the unique key %+v, whose word lies at %v", c.w.name(t.ID), u, at)
	}
	c.inOrder(t)
	x := t.Expiry()
	if x.StartWithinMS > 0 != (x.StartBy > 0) || x.FinishWithinMS > 0 != (x.FinishBy > 0) {
		c.w.violated("%s ends with the time limits %+v", c.w.name(t.ID), x)
	}
	begun, put := false, int64(0) // when it was put off last: that may leave no time
	redriven := 0                 // its times began again then
	for i := range t.Steps {
		if t.Steps[i].Kind == historysim.StepRedriven {
			redriven = i
		}
	}
	for i := range t.Steps[redriven:] {
		s := &t.Steps[redriven+i]
		switch s.Kind {
		case historysim.StepStarted:
			if late := !begun && x.StartBy > 0 && s.At >= x.StartBy || x.FinishBy > 0 && s.At >= x.FinishBy; late {
				c.w.violated("attempt %d of %s begins at %d, its time was %+v", s.Grant, c.w.name(t.ID), s.At, x)
			}
		case historysim.StepFailed, historysim.StepTimedOut, historysim.StepLost:
			begun = true
		case historysim.StepSnoozed:
			put = s.At
		}
	}
	first := x.StartBy
	if first == 0 || x.FinishBy > 0 && x.FinishBy < first {
		first = x.FinishBy
	}
	switch {
	case t.State != historysim.Lapsed:
	case x == (historysim.Expiry{}):
		c.w.violated("%s has no time limit, and has expired", c.w.name(t.ID))
	case begun && x.FinishBy == 0, !begun && t.FinishedAt < first && (t.FinishedAt != put || x.FinishBy == 0):
		c.w.violated("%s expires at %d, its time was %+v, it has begun: %v", c.w.name(t.ID), t.FinishedAt, x, begun)
	}
}
