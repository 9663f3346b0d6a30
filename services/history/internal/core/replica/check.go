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
	return errors.Join(r.checkTasks(), r.checkWaiting(), r.gone.check(), r.checkOrder())
}

// checkTasks compares the rooms and the lists with the stays that are in memory.
func (r *Replica) checkTasks() error {
	var charged []admission.Charge
	var listed []*dispatch.Entry
	pinned, live, wakes := 0, 0, 0
	for _, e := range r.tasks {
		if e.charged > 0 {
			charged = append(charged, admission.Charge{At: Queue{Lane: e.Position.Lane(), Domain: e.Domain}, Shared: e.shared, Bytes: e.charged})
		}
		if exempt := e.left || e.exempt && e.State == taskstate.Running; exempt != (e.charged == 0) {
			return fmt.Errorf("task %s (%s, left %v, exempt %v) is charged %d bytes", e.ID, e.State, e.left, e.exempt, e.charged)
		}
		if !e.left {
			live++
			if listed = append(listed, &e.Entry); !e.State.Finished() && e.WakeAt() > 0 {
				wakes++
			}
			if r.pinned[e.ID] == e {
				pinned++
			}
		}
	}
	if pinned != len(r.pinned) {
		return fmt.Errorf("%d tasks are pinned, %d are listed", pinned, len(r.pinned))
	}
	if live != r.live {
		return fmt.Errorf("%d tasks are counted, there are %d", r.live, live)
	}
	if r.wake.Len() > wakes {
		return fmt.Errorf("%d tasks are to be woken, only %d have a time", r.wake.Len(), wakes)
	}
	return errors.Join(r.Lists.Check(listed), r.Gate.Check(charged, r.replay != nil))
}

// checkWaiting looks at events and stays that wait: each for something that can still come.
func (r *Replica) checkWaiting() error {
	if err := r.early.check(); err != nil {
		return err
	}
	for id, w := range r.early.byID {
		waiting := w.waiting
		if len(waiting) == 0 {
			return fmt.Errorf("an empty list waits for task %s", id)
		}
		for i, h := range waiting {
			if h.ev.ID != id || i > 0 && h.seq < waiting[i-1].seq {
				return fmt.Errorf("what waits for task %s is out of order: event %d of message %d", id, i, h.seq)
			}
			if e := r.tasks[id]; h.command() && e != nil && !e.left && e.State != taskstate.Waiting && e.State != taskstate.Dead {
				return fmt.Errorf("a command waits for task %s, which is %s", id, e.State)
			}
		}
	}
	return nil
}

// check compares the order and the counts with what waits.
func (l *earlyList) check() error {
	commands := 0
	for id, w := range l.byID {
		if w.id != id || w.at.Value != w {
			return fmt.Errorf("what waits for task %s is out of line", id)
		}
		for _, h := range w.waiting {
			commands += h.weight()
		}
	}
	sum := 0
	for _, n := range l.ofDomain {
		sum += n
	}
	if l.order.Len() != len(l.byID) || commands != l.commands || sum != commands {
		return fmt.Errorf("%d commands of %d tasks wait, %d of %d are counted, of all domains %d", commands, len(l.byID), l.commands, l.order.Len(), sum)
	}
	return nil
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
