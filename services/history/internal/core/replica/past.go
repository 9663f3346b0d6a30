package replica

import (
	"math"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// pastMin is how many tasks are known at least after they are forgotten, twice as many at most.
const pastMin = 32768

const over = math.MaxUint32

// add notes that e has left memory.
func (x *pastStays) add(e *Entry) {
	before := e.Parkings
	switch {
	case e.State == taskstate.Dead: // it may be redriven
		before++
	case e.State.Finished():
		before = over
	}
	if x.young == nil || len(x.young) >= pastMin {
		x.young, x.old = map[ids.TaskID]uint32{}, x.young
	}
	x.young[e.ID] = max(x.young[e.ID], x.old[e.ID], before)
}

// knows tells whether this stay of a task is over.
func (x *pastStays) knows(e *Entry) bool {
	before := max(x.young[e.ID], x.old[e.ID])
	return before == over || e.Parkings < before
}
