// Package batch decides what counts as the end of a batch's task, and when a batch is looked at and is over (decision 0047).
//
// Owns: how many tasks were admitted, the counts by end, the order in which batches are looked at, and what a look concludes. Never does: I/O, or reading a clock.
// On failure: nothing can fail.
//
// Nothing here has to be right about what is stored now: totals only grow, and what is concluded is stored over what was read.
package batch

import "github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"

// Ends is how tasks of a batch ended.
type Ends struct{ Completed, Dead, Cancelled, Expired int64 }

// Add counts an end of t. A task that was redriven has been counted as dead before: only its last end counts.
func (e *Ends) Add(t *taskstate.Task) {
	switch t.State {
	case taskstate.Completed:
		e.Completed++
	case taskstate.Dead:
		e.Dead++
	case taskstate.Cancelled:
		e.Cancelled++
	case taskstate.Lapsed:
		e.Expired++
	}
	if t.Redriven().Count > 0 {
		e.Dead--
	}
}

// Plus is the sum of both.
func (e Ends) Plus(o Ends) Ends {
	return Ends{e.Completed + o.Completed, e.Dead + o.Dead, e.Cancelled + o.Cancelled, e.Expired + o.Expired}
}

// Total is how many tasks have ended.
func (e Ends) Total() int64 { return e.Completed + e.Dead + e.Cancelled + e.Expired }
