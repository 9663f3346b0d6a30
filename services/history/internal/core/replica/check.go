package replica

import (
	"errors"
	"fmt"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/admission"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Check says what is wrong with the replica, or nil: what must hold after every step. It
// looks at everything, so it is for tests and simulations.
func (r *Replica) Check() error {
	return errors.Join(r.checkTasks(), r.locator.Check(r), r.gone.check(), r.checkOrder())
}

// checkTasks compares the rooms and the lists with the stays that are in memory.
func (r *Replica) checkTasks() error {
	var charged []admission.Charge
	var listed []*dispatch.Entry
	live, wakes := 0, 0
	for _, e := range r.tasks {
		if e.charged > 0 {
			charged = append(charged, e.charge(e.charged))
		}
		if exempt := e.left || e.exempt && e.State == taskstate.Running; exempt != (e.charged == 0) {
			return fmt.Errorf("task %s (%s, left %v, exempt %v) is charged %d bytes", e.ID, e.State, e.left, e.exempt, e.charged)
		}
		if !e.left {
			live++
			if listed = append(listed, &e.Entry); !e.State.Finished() && e.WakeAt() > 0 {
				wakes++
			}
		}
	}
	if live != r.live {
		return fmt.Errorf("%d tasks are counted, there are %d", r.live, live)
	}
	if r.wake.Len() > wakes {
		return fmt.Errorf("%d tasks are to be woken, only %d have a time", r.wake.Len(), wakes)
	}
	return errors.Join(r.Lists.Check(listed), r.Gate.Check(charged, r.replay != nil))
}

func (g *gone) check() error {
	bytes := 0
	for _, e := range g.queue {
		bytes += e.size
		if !e.e.left {
			return fmt.Errorf("task %s is gone and has not left", e.e.ID)
		}
	}
	if bytes != g.bytes {
		return fmt.Errorf("the tasks that are gone take %d bytes, %d are counted", bytes, g.bytes)
	}
	return nil
}
