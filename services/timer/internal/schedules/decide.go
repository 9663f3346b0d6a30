package schedules

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/runs"
)

// Decision is what follows for a schedule at a time.
type Decision struct {
	// Home is the schedule with its new progress, to be stored in place of the one that it was decided from, together with Tasks, those of the runs that
	// start; nil = nothing has changed.
	Home  *logv1.ScheduleHome
	Tasks []*logv1.Record
	// Cancel are tasks that are to be cancelled.
	Cancel []ids.TaskID
	// WakeMS is when to decide again, Unix ms, if Wakes.
	WakeMS int64
	Wakes  bool

	started        []runs.Run
	before, behind runs.State
}

// Asks returns the tasks that a decision asks about, whether each has ended. It asks in this order, and no further than the first that has not.
func (p *Plan) Asks(nowMS int64) []ids.TaskID {
	if s := stateOf(p.home); s.Asks(p.policy, p.calendar, nowMS) {
		return s.Running
	}
	return nil
}

// Decide decides a schedule as it is stored. Ended says which of its tasks have ended, newID makes the task of a run, version is the one to write.
func (p *Plan) Decide(nowMS int64, ended map[ids.TaskID]bool, newID func() ids.TaskID, version uint32) Decision {
	state := stateOf(p.home)
	d := Decision{before: state.Clone()}
	made := state.Decide(p.policy, p.calendar, nowMS, func(id ids.TaskID) bool { return ended[id] }, func(runs.Run) ids.TaskID { return newID() })
	d.started, d.behind, d.Cancel = made.Start, state, made.Cancel
	if made.Changed {
		d.Home = withState(p.home, state, version)
		for _, r := range made.Start {
			d.Tasks = append(d.Tasks, p.submit(r))
		}
	}
	d.WakeMS, d.Wakes = state.Wake(p.policy, p.calendar, nowMS)
	return d
}
