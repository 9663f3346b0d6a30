// Package runs decides which runs of a schedule start, wait, or are skipped.
//
// Owns: the rules for overlap, for missed runs and for their number, and when a schedule is to be decided again. A run is a time of the calendar,
// a trigger or a time of a backfill; its task is the caller's.
//
// Never does: I/O, reading a clock, or knowing a calendar: times come in. State is a value: the caller stores what Decide has made of it in one write
// with the tasks of the runs that start, or forgets it.
//
// On failure: nothing can fail. A schedule that no one has decided for a while has missed runs, and its rule says which are made up for.
package runs

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

const (
	// DueMax is how many runs wait at most. Times of the calendar beyond that wait in it, or are skipped where an earlier run has not ended.
	DueMax = 100
	// RecentMax is how many runs are remembered.
	RecentMax = 20
	// RunningMax is of how many tasks it is known that they may not have ended: only triggers start beside others.
	RunningMax = 100
	// MissedAfterMS is how late a run is at least that counts as missed.
	MissedAfterMS = 10_000
	// EndedEveryMS is how soon it is asked again whether a run has ended that others wait for.
	EndedEveryMS = 1000
	// timesMax bounds the times of a calendar that one decision looks at.
	timesMax = 10_000
)

// Overlap says what follows if a run is due and the task of an earlier one has not ended.
type Overlap int

// The values of yard.v1.Overlap.
const (
	Skip Overlap = iota + 1
	BufferOne
	BufferAll
	Allow
	CancelOther
)

// Missed says which missed runs are made up for.
type Missed int

// The values of yard.v1.Missed.
const (
	MissedAll Missed = iota + 1
	MissedLast
	MissedSkip
)

// Reason says why there is a run, or none.
type Reason int

// The values of log.v1.RunReason.
const (
	Scheduled Reason = iota + 1
	Triggered
	Backfilled
	Overlapped
	WasMissed
)

// Calendar has the times of a schedule, Unix ms.
type Calendar interface {
	// Next is the first time after one. If ok is false, there is none up to atMS; if atMS is not after afterMS, there is none at all.
	Next(afterMS int64) (atMS int64, ok bool)
	// Jitter is how much later the run of a time starts, ms.
	Jitter(atMS int64) int64
}

// Policy is how a schedule was put.
type Policy struct {
	Overlap   Overlap
	Missed    Missed
	CatchUpMS int64
	// RunsMax is how many runs of the calendar there are at most; 0 = any number.
	RunsMax int64
	Paused  bool
}

// Run is one run.
type Run struct {
	// AtMS is the time that it is for, StartMS when it may start, or did; 0 = it did not.
	AtMS, StartMS int64
	Reason        Reason
	// Task is its task, once it has started. Request names a trigger.
	Task    ids.TaskID
	Request string
}

// mayStart tells whether the time of a run has come. A paused schedule has triggers only.
func (r Run) mayStart(p Policy, nowMS int64) bool {
	return r.StartMS <= nowMS && (!p.Paused || r.Reason == Triggered)
}

// State is the progress of a schedule.
type State struct {
	// DecidedMS: all times of the calendar up to it are decided.
	DecidedMS int64
	// Due are runs that have not started, in their order.
	Due []Run
	// Running are tasks that had not ended when that was last asked for. There are none where runs may overlap.
	Running []ids.TaskID
	// Recent are the last runs, newest first.
	Recent []Run
	// Runs, Skipped and Missed count runs of the calendar.
	Runs, Skipped, Missed int64
}

// Clone copies a state.
func (s State) Clone() State {
	s.Due, s.Running, s.Recent = slices.Clone(s.Due), slices.Clone(s.Running), slices.Clone(s.Recent)
	return s
}

// Decision is what follows for the caller.
type Decision struct {
	// Start are runs that start now, with the tasks that they were given.
	Start []Run
	// Cancel are tasks that are to be cancelled, as others wait for their end.
	Cancel []ids.TaskID
	// Changed: the state is another one, and is to be stored.
	Changed bool
}

// Asks tells whether a decision has to know which of the running tasks have ended.
func (s *State) Asks(p Policy, c Calendar, nowMS int64) bool {
	if len(s.Running) == 0 || p.Overlap == Allow {
		return false
	}
	if slices.ContainsFunc(s.Due, func(r Run) bool { return r.mayStart(p, nowMS) && r.Reason != Triggered }) {
		return true
	}
	at, ok := s.ahead(p, c)
	return ok && at <= nowMS
}

// ahead is when the calendar is to be read again: at its next time, or where the search for it is to go on.
func (s *State) ahead(p Policy, c Calendar) (atMS int64, ok bool) {
	atMS, ok = s.next(p, c)
	return atMS, ok || atMS > s.DecidedMS
}

// next is the next time of the calendar that is to be decided.
func (s *State) next(p Policy, c Calendar) (atMS int64, ok bool) {
	if p.Paused || p.RunsMax > 0 && s.Runs+s.scheduled() >= p.RunsMax {
		return 0, false
	}
	return c.Next(s.DecidedMS)
}

// scheduled counts the runs of the calendar that have not started.
func (s *State) scheduled() (n int64) {
	for _, r := range s.Due {
		if r.Reason == Scheduled {
			n++
		}
	}
	return n
}

// Decide decides what is due by now. Ended says of the running tasks which have ended; newID makes the task of a run.
func (s *State) Decide(p Policy, c Calendar, nowMS int64, ended func(ids.TaskID) bool, newID func(Run) ids.TaskID) (d Decision) {
	before := len(s.Running)
	s.Running = slices.DeleteFunc(s.Running, func(id ids.TaskID) bool { return p.Overlap == Allow || ended(id) })
	d.Changed = len(s.Running) != before
	if s.read(p, c, nowMS) {
		d.Changed = true
	}
	var left []Run
	for _, r := range s.Due {
		switch {
		case !r.mayStart(p, nowMS):
			left = append(left, r)
		case r.Reason == Triggered || p.Overlap == Allow || len(s.Running) == 0:
			r.StartMS, r.Task = nowMS, newID(r)
			s.started(p, r)
			d.Start = append(d.Start, r)
		default:
			left = s.overlaps(p, left, r)
		}
	}
	d.Changed = d.Changed || len(left) != len(s.Due)
	s.Due = left
	if p.Overlap == CancelOther && s.Ready(p, nowMS) {
		d.Cancel = slices.Clone(s.Running)
	}
	return d
}

// started notes that a run starts.
func (s *State) started(p Policy, r Run) {
	if r.Reason == Scheduled {
		s.Runs++
	}
	if p.Overlap != Allow {
		s.Running = append(s.Running, r.Task)
		s.Running = s.Running[max(0, len(s.Running)-RunningMax):]
	}
	s.remember(r)
}

// overlaps adds a run to those that wait, or does not, by the rule for runs that are due while an earlier one has not ended.
func (s *State) overlaps(p Policy, left []Run, r Run) []Run {
	waits := slices.IndexFunc(left, func(w Run) bool { return w.Reason == Scheduled && w.StartMS <= r.StartMS })
	switch {
	case r.Reason == Backfilled || p.Overlap == BufferAll:
		return append(left, r)
	case p.Overlap == BufferOne && waits < 0:
		return append(left, r)
	case p.Overlap == CancelOther:
		if waits >= 0 {
			s.skip(left[waits], Overlapped)
			left = slices.Delete(left, waits, waits+1)
		}
		return append(left, r)
	}
	s.skip(r, Overlapped)
	return left
}

// skip notes that there is no run.
func (s *State) skip(r Run, why Reason) {
	if why == WasMissed {
		s.Missed++
	} else {
		s.Skipped++
	}
	r.StartMS, r.Reason = 0, why
	s.remember(r)
}

func (s *State) remember(r Run) {
	s.Recent = slices.Insert(s.Recent, 0, r)
	s.Recent = s.Recent[:min(len(s.Recent), RecentMax)]
}

// read takes the times of the calendar up to now into what is due. It tells whether there were any.
func (s *State) read(p Policy, c Calendar, nowMS int64) (any bool) {
	var last *Run // the last one that was missed, if that is made up for
	makeUp := func() {
		if last != nil {
			s.Due, last = append(s.Due, *last), nil
		}
	}
	for range timesMax {
		at, ok := s.next(p, c)
		if !ok && at > s.DecidedMS && at <= nowMS { // the search goes on from there
			s.DecidedMS, any = at, true
			continue
		}
		if !ok || at > nowMS {
			makeUp()
			return any
		}
		r := Run{AtMS: at, StartMS: at + c.Jitter(at), Reason: Scheduled}
		late := nowMS - r.StartMS
		runs := late < MissedAfterMS || p.Missed == MissedAll && late <= p.CatchUpMS
		switch {
		case runs && last != nil:
			makeUp() // it counts, and this time may be one too many
			continue
		case runs && len(s.Due) < DueMax:
			s.Due = append(s.Due, r)
		case runs && p.Overlap == BufferAll && len(s.Running) > 0:
			s.skip(r, Overlapped)
		case runs:
			return any // it stays in the calendar until there is room
		case p.Missed == MissedLast && late <= p.CatchUpMS:
			if last != nil {
				s.skip(*last, WasMissed)
			}
			last = &r
		default:
			s.skip(r, WasMissed)
		}
		s.DecidedMS, any = at, true
	}
	if last != nil { // there are more
		s.skip(*last, WasMissed)
	}
	return any
}

// Ready tells whether a run is due that has not started: one that a decision has left, or one that was added since.
func (s *State) Ready(p Policy, nowMS int64) bool {
	return slices.ContainsFunc(s.Due, func(r Run) bool { return r.mayStart(p, nowMS) })
}

// Wake is when the schedule is to be decided again after a decision, Unix ms; ok is false if it is not by itself.
func (s *State) Wake(p Policy, c Calendar, nowMS int64) (atMS int64, ok bool) {
	if atMS, ok = s.ahead(p, c); ok && atMS <= nowMS && len(s.Due) >= DueMax {
		atMS = nowMS + EndedEveryMS // it waits for room
	}
	for _, r := range s.Due {
		if p.Paused && r.Reason != Triggered {
			continue
		}
		at := r.StartMS
		if at <= nowMS { // it waits for another one
			at = nowMS + EndedEveryMS
		}
		if !ok || at < atMS {
			atMS, ok = at, true
		}
	}
	return atMS, ok
}
