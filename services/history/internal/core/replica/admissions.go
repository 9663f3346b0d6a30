package replica

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/admission"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// The gate's view of a partition, for packages that know the replica only.
type (
	Queue       = admission.Queue
	QueueCursor = admission.Cursor
	QueueLevel  = admission.Level
	Levels      = admission.Levels
	Admission   = admission.Step
	Reading     = admission.Reading
	Look        = admission.Look
	FullWeight  = admission.FullWeight
)

// The kinds of admissions.
const (
	Read  = admission.Read
	Split = admission.Split
	Merge = admission.Merge
)

// Undecided reports whether what memory has of a task rests on an admission that is not stored.
func Undecided(r *Replica, id ids.TaskID) bool {
	return slices.ContainsFunc(r.unlogged.entries, func(e *Entry) bool { return e.ID == id })
}

// AheadOf are the commands that wait for a task that is not in memory, and whose verdicts may be known: what is found of it elsewhere is
// behind them.
func AheadOf(r *Replica, id ids.TaskID) Ahead {
	if e := r.tasks[id]; e != nil && !e.left {
		return nil
	}
	return r.locator.Ahead(id)
}

// wantTurn tells whether a turn is to be asked for though no event waits for it.
func (s step) wantTurn() bool {
	return s.MayAdmit() && s.now.MS >= s.unlogged.notBefore && (s.snapshots.due || len(s.unlogged.entries) > 0 || s.answers.Waiting())
}

// admitted takes in that the turn with the steps so far is stored: what they sent elsewhere may go.
func (s step) admitted() {
	s.EndTurn(nil)
	for _, e := range s.unlogged.entries {
		if e.unlogged = false; !e.left {
			s.dispatch(e)
		}
	}
	clear(s.unlogged.entries)
	s.unlogged.entries = s.unlogged.entries[:0]
}

// charge makes e take its room, or give it back. A task that has run for long takes none: how
// many run is up to the workers.
func (r *Replica) charge(e *Entry) {
	want := int32(0)
	if !e.left && (!e.exempt || e.State != taskstate.Running) {
		want = int32(e.Footprint())
	}
	r.Charge(e.charge(want), e.charged)
	e.charged = want
}

// discharge has e take no room as a task of a tasklist that it has left; then charge has it take that of the one that it is in.
func (r *Replica) discharge(e *Entry, left string) {
	if e.Tasklist == left {
		return
	}
	nothing := e.charge(0)
	nothing.Tasklist = left
	r.Charge(nothing, e.charged)
	e.charged = 0
}

// charge is so many bytes that e takes of its lane's window.
func (e *Entry) charge(bytes int32) admission.Charge {
	return admission.Charge{Lane: e.Position.Lane(), Domain: e.Domain, Tasklist: e.Tasklist, Shared: e.shared, Bytes: bytes}
}

// UnreadLevels are how far the lanes are read, and the queues of a domain; "" = of all.
func (r *Replica) UnreadLevels(domain string) Levels { return r.Levels(domain, r.eventAt) }
