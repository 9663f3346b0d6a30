package tablecall

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
)

// want has a call take triggers for the polls of tasklists: of those that wait for slots that may be free, then of
// dirty ones, as far as one call may look at tasklists and name columns. The others come
// next: by then, what is full is known. It returns the tasklists for which there is nothing to wait.
func (t *Tables[L]) want(c *Call[L]) (idle []*Source[L]) {
	leaving, try := c.calls.leaving, &trial[L]{call: c, tables: t}
	if !leaving {
		t.TryWaiters(&c.Call, try)
	}
	idle = try.idle
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

// trial has a call take triggers for tasklists that wait for slots, with half of what there is: dirty ones are not to wait for them.
type trial[L List] struct {
	call   *Call[L]
	tables *Tables[L]
	idle   []*Source[L]
}

// Enough reports whether the half is used up.
func (t *trial[L]) Enough() bool {
	enough := t.call.looks >= LooksMax/2 || t.call.candidates >= CallCandidatesMax/2
	t.call.cut = t.call.cut || enough
	return enough
}

// May reports whether a call may take something for a tasklist.
func (t *trial[L]) May(l *limit.List) bool {
	switch {
	case t.call.calls.cfg.Of(l).asking || t.call.candidates >= CallCandidatesMax/2:
		return false
	case t.call.looks >= LooksMax/2:
		t.call.cut = true
		return false
	}
	return true
}

// Look has the call take triggers of a tasklist.
func (t *trial[L]) Look(of *limit.List) {
	l := t.call.calls.cfg.Of(of)
	dirty := l.dirty
	asked, more := t.call.look(l, false)
	if !asked && !more {
		t.idle = append(t.idle, l)
	}
	if dirty {
		l.dirty = true
	} else if more {
		t.tables.dirty = append(t.tables.dirty, l)
	}
}
