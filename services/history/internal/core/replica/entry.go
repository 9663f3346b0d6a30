package replica

import (
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// first reports whether an event of a kind may be the first one of a stay. Only services of ours write such events.
func first(kind taskstate.Kind) bool {
	return kind == taskstate.Started || kind == taskstate.Lapse || kind == taskstate.Reject
}

const (
	// goneMax and goneBytesMax bound the tasks that are kept after they have left, so
	// that questions soon after an end need not go to the other stores.
	goneMax      = 32768
	goneBytesMax = 4 << 20
	// goneForMS is how long they are kept at least, if there is room; twice as long at
	// most. Left over from a load they would keep far more memory than they take, since
	// they lie scattered over it.
	goneForMS = 5000
)

func (r *Replica) keepGone(e *Entry) {
	g := &r.gone
	size := e.Footprint()
	g.queue = append(g.queue, goneEntry{e, size})
	g.bytes += size
	g.fresh++
	for len(g.queue) > g.max || g.bytes > g.bytesMax {
		r.dropGone()
	}
	g.fresh = min(g.fresh, len(g.queue))
}

// sweepGone drops the tasks that left before the last sweep.
func (s step) sweepGone() {
	g := &s.gone
	if s.now.MS < g.sweepAt {
		return
	}
	for len(g.queue) > g.fresh {
		s.past.add(g.queue[0].e)
		s.dropGone()
	}
	g.fresh, g.sweepAt = 0, s.now.MS+goneForMS
}

// dropGone drops the oldest.
func (r *Replica) dropGone() {
	g := &r.gone
	old := g.queue[0]
	g.queue[0] = goneEntry{}
	if g.queue = g.queue[1:]; len(g.queue) == 0 {
		g.queue = nil
	}
	g.bytes -= old.size
	if r.tasks[old.e.ID] == old.e {
		delete(r.tasks, old.e.ID)
	}
}

// leave takes e out of memory.
func (r *Replica) leave(e *Entry) {
	if e.left {
		return
	}
	e.left = true
	r.live--
	r.snapshots.bytes++ // what left is in the last snapshot, and so in the log, until the next one
	r.charge(e)
	r.wake.Remove(e)
	r.Lists.Leave(&e.Entry)
	r.lines.Leave(e.Seat)
	if r.tasks[e.ID] != e {
		return
	}
	r.keepGone(e)
	r.locator.Left(&e.Task)
}
