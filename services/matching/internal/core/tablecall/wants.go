package tablecall

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
)

// want has a call take triggers for the polls of tasklists: of those that wait for slots that may be free, then of
// dirty ones, as far as one call may look at tasklists and name columns. The others come
// next: by then, what is full is known. It returns the tasklists for which there is nothing to wait.
func (t *Tables[L]) want(c *Call[L]) (idle []*Source[L]) {
	leaving := c.calls.leaving
	if !leaving {
		t.TryWaiters(&c.Call, c.halfFull, func(of *limit.List) bool {
			l := c.calls.cfg.Of(of)
			if l.asking || c.halfFull() {
				return false
			}
			dirty := l.dirty
			asked, more := c.look(l, false)
			if !asked && !more {
				idle = append(idle, l)
			}
			if l.dirty = dirty || more; more && !dirty {
				t.dirty = append(t.dirty, l)
			}
			return true
		})
	}
	var again []*Source[L]
	n := 0
	for ; n < len(t.dirty) && (leaving || c.candidates < CallCandidatesMax); n++ {
		if c.looks >= LooksMax {
			c.cut = true
			break
		}
		l := t.dirty[n]
		if l.asking {
			again = append(again, l)
			continue
		}
		asked, more := c.look(l, leaving)
		if more {
			again = append(again, l)
		} else if !asked {
			idle = append(idle, l)
		}
	}
	t.dirty = append(slices.Delete(t.dirty, 0, n), again...)
	c.WaitInLine()
	return idle
}

// halfFull reports whether half of what a call may look at is used up: those that wait for slots get no more, so that dirty ones do not wait for them.
func (c *Call[L]) halfFull() bool {
	full := c.looks >= LooksMax/2 || c.candidates >= CallCandidatesMax/2
	c.cut = c.cut || full
	return full
}
