package replica

import (
	"math"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// pastMax bounds the stays that are known to be over after their task is forgotten.
const pastMax = 32768

// pastStays tells of tasks that left and were forgotten which stays of them are over, so that a
// submit is known again that was stored twice and is read late. It is little and in one piece.
type pastStays struct {
	// before is, by task, the first stay that may still come; over for a task that has finished for good.
	before map[ids.TaskID]uint32
	ring   []ids.TaskID
	next   int
}

const over = math.MaxUint32

// add notes that e has left memory; its place is taken from the one that was added first.
func (x *pastStays) add(e *Entry) {
	if x.before == nil {
		x.before = map[ids.TaskID]uint32{}
	}
	before := e.Parkings
	switch {
	case e.State == taskstate.Dead: // it may be redriven
		before++
	case e.State.Finished():
		before = over
	}
	if _, ok := x.before[e.ID]; !ok {
		if len(x.ring) < pastMax {
			x.ring = append(x.ring, e.ID)
		} else {
			delete(x.before, x.ring[x.next])
			x.ring[x.next] = e.ID
			x.next = (x.next + 1) % pastMax
		}
	}
	x.before[e.ID] = max(x.before[e.ID], before)
}

// knows tells whether this stay of a task is over.
func (x *pastStays) knows(e *Entry) bool {
	before, ok := x.before[e.ID]
	return ok && (before == over || e.Parkings < before)
}
