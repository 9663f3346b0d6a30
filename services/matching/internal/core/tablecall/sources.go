package tablecall

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
)

// Sources are the tasklists of a domain that are to be asked for: their polls may find something. The zero value has none.
type Sources[L arrival.List] struct {
	dirty []*Source[L]
}

// Mark has a tasklist's triggers asked for.
func (s *Sources[L]) Mark(l *Source[L]) {
	if !l.dirty {
		l.dirty = true
		s.dirty = append(s.dirty, l)
	}
}

// Begin begins a call.
func Begin[L arrival.List](set Settings[L]) *Call[L] { return &Call[L]{set: set} }

// Want has a call take triggers for the polls of tasklists: of those that wait for slots that may be free, then of
// dirty ones, as far as one call may look at tasklists and name columns. The others come
// next: by then, what is full is known. If leave is set, nothing is taken. It returns the tasklists for which there is nothing to wait.
func (s *Sources[L]) Want(c *Call[L], d *limit.Domain, leave bool) (idle []*Source[L]) {
	t := &trial[L]{call: c, sources: s}
	if !leave {
		d.TryWaiters(&c.Call, t)
	}
	idle = t.idle
	var again []*Source[L]
	n := 0
	for ; n < len(s.dirty) && (leave || c.candidates < CallCandidatesMax); n++ {
		if c.Looks >= LooksMax {
			c.Cut = true
			break
		}
		l := s.dirty[n]
		if l.asking {
			again = append(again, l)
			continue
		}
		asked, more := c.look(l, leave)
		if more {
			again = append(again, l)
		} else if !asked {
			idle = append(idle, l)
		}
	}
	s.dirty = append(slices.Delete(s.dirty, 0, n), again...)
	c.WaitInLine()
	return idle
}

// trial has a call take triggers for tasklists that wait for slots, with half of what there is: dirty ones are not to wait for them.
type trial[L arrival.List] struct {
	call    *Call[L]
	sources *Sources[L]
	idle    []*Source[L]
}

// Enough reports whether the half is used up.
func (t *trial[L]) Enough() bool {
	enough := t.call.Looks >= LooksMax/2 || t.call.candidates >= CallCandidatesMax/2
	t.call.Cut = t.call.Cut || enough
	return enough
}

// May reports whether a call may take something for a tasklist.
func (t *trial[L]) May(l *limit.List) bool {
	switch {
	case t.call.set.Of(l).asking || t.call.candidates >= CallCandidatesMax/2:
		return false
	case t.call.Looks >= LooksMax/2:
		t.call.Cut = true
		return false
	}
	return true
}

// Look has the call take triggers of a tasklist.
func (t *trial[L]) Look(of *limit.List) {
	l := t.call.set.Of(of)
	dirty := l.dirty
	asked, more := t.call.look(l, false)
	if !asked && !more {
		t.idle = append(t.idle, l)
	}
	if dirty {
		l.dirty = true
	} else if more {
		t.sources.dirty = append(t.sources.dirty, l)
	}
}
