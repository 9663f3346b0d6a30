package replica

import (
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// The line of its order key decides whether a task has a trigger: only the first one has.

// inKeyLine tells whether e belongs into the line of an order key: not while it waits in the timer store.
func (e *Entry) inKeyLine() bool {
	return e.Order() != nil && !e.left && !e.State.Finished() && e.State != taskstate.Waiting
}

// enterLine takes e into the line of its order key, if it belongs there.
func (r *Replica) enterLine(e *Entry) {
	if !e.inKeyLine() {
		return
	}
	if e.Seat == nil {
		e.Seat = &line.Seat{Task: &e.Task}
	}
	r.lines.Enter(e.Seat)
}

// stepAside takes e, which has ended or is parked, out of the line of its order key: then it is the next one's turn.
func (s step) stepAside(e *Entry) {
	first := s.lines.Leave(e.Seat)
	if first == nil || !s.giveTurn(first) {
		return
	}
	next := s.tasks[first.Task.ID]
	if next.State == taskstate.Ready {
		s.trigger(next)
	} else { // it waits for its time, or that has come before its turn
		s.wake.Set(next, next.WakeAt())
	}
}

// giveTurn notes that it is the turn of the first task of a line, and tells whether it was not known before. A task that is read later has a later place, so it
// is true, and stays so, whatever owner comes next, and however late its trigger is used.
func (s step) giveTurn(first *line.Seat) bool {
	if s.replay != nil || first.TurnAt > 0 {
		return false
	}
	first.TurnAt = s.now.MS
	first.Task.TakeTurn()
	return true
}

// OrderKeys are the lines of order keys, to be read.
func (r *Replica) OrderKeys() *line.Lines { return r.lines }

// checkOrder compares the lines with the tasks in memory.
func (r *Replica) checkOrder() error {
	var seats []*line.Seat
	for _, e := range r.tasks {
		if e.inKeyLine() {
			seats = append(seats, e.Seat)
		}
	}
	return r.lines.Check(seats, r.replay == nil)
}
