package replica

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// redriveOf is a redrive of a task, if there is to be one: of a letter that is, or that is no more. None is named before its task has died.
func (s *story) redriveOf(m *modelTask) (ev taskstate.Event, ok bool) {
	stay := m.Parkings
	if m.State != taskstate.Dead && stay > 0 {
		stay--
	}
	if !(m.State == taskstate.Dead && s.rng.IntN(2) == 0) && !(stay < m.Parkings && s.rng.IntN(20) == 0) {
		return ev, false
	}
	return taskstate.Event{
		Kind: taskstate.Redrove, ID: m.ID, Domain: []string{m.Domain, m.Domain, m.Domain, otherThan(m.Domain)}[s.rng.IntN(4)], Message: "again",
		Redrive: &taskstate.Redrive{Letter: uint64(stay) + 1, Tasklist: m.Tasklist, Parkings: stay, Request: 1 + s.rng.Uint64N(1000)},
	}, true
}

// redrive brings a dead task back, once.
func (s *story) redrive(ev *taskstate.Event, msg *message, m *modelTask, foreign bool) fault.Code {
	switch {
	case foreign:
		return fault.NotFound
	case m.RedrivenBy(ev):
	case m.State != taskstate.Dead || m.Parkings != ev.Redrive.Parkings:
		return fault.FailedPrecondition
	default:
		own := *ev
		own.Seq, own.Index = msg.seq, uint32(len(msg.list)-1)
		s.note(m, taskstate.Bring(&m.Task, &own, msg.at))
	}
	return ""
}

// callers is how many of five callers may cancel a task, the last one of which is a service: that one may find a redriven task in the timer
// store, or not, which is up to the store.
func callers(m *modelTask) int {
	if m.State == taskstate.Dead {
		return 4
	}
	return 5
}
