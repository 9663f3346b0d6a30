// Package intake decides what a submit does next, until it is answered.
//
// A request has one share, or several if its tasks have keys of several partitions. A share is stored by one write, and is a state machine. All shares
// go through the same one, whatever they have: keys, a batch, many tasklists, a repeat. The Guard keeps a share from being stored twice:
//
//	            First                    Named                      Keyed
//	goes        with the group commit    alone, to its home         with others of its domain, to its keys' partition
//	is          a first try              a try that may be a repeat  any try of tasks with unique keys
//	guarded by  its short life           its message id             a message about each key
//
//	            ┌─ found: stored
//	searching ──┼─ a first try may be under way: searching, later
//	            └─ not found: counting ─┬─ full: refused
//	                                    └─► placing ─► appending ─┬─ acknowledged in time: stored
//	   ▲                                   ▲                      ├─ acknowledged late: verifying ─► stored, refused, or again
//	   │                                   └──────────────────────┼─ not stored (First)
//	   ├─────── not stored, or unknown (Named) ◄──────────────────┼─ not stored (Named, Keyed)
//	   │                                                          ├─ no answer (First): resending ─► stored, unknown
//	 checking ◄── no answer, or a key is taken (Keyed) ◄──────────┘
//
// Owns: the order of these steps, how long each may be waited for, and what is known when a share or a request ends.
//
// Never does: I/O, or read a clock. The shell carries a Step out, and reports what came of it.
//
// On failure: a share ends Stored, NotStored or Unknown. If it is Certain, no try of this frontend is stored, nor will be; ForGood, no try of anyone.
package intake

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
)

// Guard is what keeps a share from being stored twice.
type Guard uint8

// The guards.
const (
	First Guard = iota
	Named
	Keyed
)

// Do is what the shell does next.
type Do uint8

// The steps.
const (
	// Search searches for the tasks wherever an earlier try may have put them: Searched.
	Search Do = iota
	// Count counts the tasks in the caps and the quota of their domain: CountedAs.
	Count
	// Check reads what the log says of the batch and of each key, and decides about the tasks whose key is taken: Checked.
	Check
	// Place chooses a partition: Placed.
	Place
	// Append writes the tasks, which the log may take for Step.Within after the time of the request: Appended.
	Append
	// Resend writes the same message again: Appended.
	Resend
	// Verify reads the message: was it taken in time? Verified.
	Verify
	// ReadClose reads whether the batch is closed in the partition: CloseRead.
	ReadClose
	// Wait waits for Step.For, or longer where Step.Grows: a growing delay.
	Wait
	// Finish answers with Step.End.
	Finish
)

// Step is one step. A Wait is followed by the step that is then next.
type Step struct {
	Do     Do
	Within time.Duration
	For    time.Duration
	Grows  bool
	End    End
}

// Terms are what is known of a share when it begins.
type Terms struct {
	Guard Guard
	// Made is the time in the id of the request, or when it came.
	Made time.Time
	// HasID: the client can repeat it. Tries counts the tries of a client that counts; else 0.
	HasID bool
	Tries int32
	// Deadline is when it is answered.
	Deadline time.Time
	// Batch: the tasks are of a batch.
	Batch bool
	// Counted: the whole request is counted, or it is not to be.
	Counted bool
	// Refused: its tasks are refused unless an earlier try has stored them. Closed: no try is stored any more.
	Refused, Closed bool
	// Conflicts: its tasks say what happens to the task that has their key, and Replaces: some replace it.
	Conflicts, Replaces bool
}

// Repeats tells whether an earlier try may have been stored.
func (t *Terms) Repeats() bool { return t.HasID && t.Tries != 1 }

// Alone tells whether a request of an age does not go with the group commit.
func Alone(hasID bool, tried int32, age time.Duration) bool {
	return hasID && (tried != 1 || age > tries.FreshFor)
}

type state uint8

const (
	searching state = iota
	counting
	checking
	placing
	appending
	resending
	verifying
	readingClose
	ended
)

// Share is what a request stores by one write. Its zero value is not started.
type Share struct {
	Terms
	state state
	// wait is before the state goes on.
	wait Step
	// searchedAt is the age at its last search, searched: there was one.
	searchedAt time.Duration
	searched   bool
	// full: it is over a cap or a quota, unless it is found.
	full bool
	// checked: its keys were free a moment ago. uncertain: a try of ours may have been stored.
	checked, uncertain bool
	within             time.Duration
	end                End
}

// Start begins a share.
func (s *Share) Start(t Terms) {
	*s = Share{Terms: t}
	switch t.Guard {
	case First:
		s.state = counting
		if t.HasID {
			s.within = tries.AliveFor
		}
	case Named:
		s.state = searching
	case Keyed:
		s.uncertain, s.state = t.Repeats(), counting
		if t.Repeats() {
			s.state = searching
		}
	}
}

// Next is what to do now.
func (s *Share) Next(now time.Time) Step {
	if s.wait.Do == Wait && s.state != ended {
		step := s.wait
		s.wait = Step{}
		return step
	}
	age := now.Sub(s.Made)
	switch s.state {
	case searching:
		s.searchedAt, s.searched = age, s.Guard == Keyed || s.Tries > 0 || age > tries.FreshFor || s.Refused || s.full
		if s.searched {
			return Step{Do: Search}
		}
		s.state = counting
		return s.Next(now)
	case counting:
		if !s.Counted {
			return Step{Do: Count}
		}
		s.count()
		return s.Next(now)
	case checking:
		return Step{Do: Check}
	case placing:
		if s.tooLate(age, now) {
			return s.finish(End{Kind: NotStored, Why: Late})
		}
		return Step{Do: Place}
	case appending:
		return s.append(age, now)
	case resending:
		return Step{Do: Resend}
	case verifying:
		return Step{Do: Verify}
	case readingClose:
		return Step{Do: ReadClose}
	case ended:
	}
	return Step{Do: Finish, End: s.end}
}

// append dates what is sent, unless it is too late to send it.
func (s *Share) append(age time.Duration, now time.Time) Step {
	switch {
	case s.Guard == First && s.tooLate(age, now):
		return s.finish(End{Kind: NotStored, Why: Late})
	case s.Guard == First:
	case s.Guard == Keyed && s.HasID && s.Tries == 1:
		if age > tries.SendUntil {
			return s.finish(End{Kind: NotStored, Why: Late})
		}
		s.within = tries.AliveFor
	case s.Guard == Keyed && age > tries.AppendUntil:
		if !s.Repeats() || s.Replaces {
			return s.finish(End{Kind: NotStored, Why: Late})
		}
		s.state = searching
		return Step{Do: Wait, For: tries.Void - age + time.Millisecond}
	case s.Guard == Keyed:
		s.within = min(age+tries.TryAliveFor, tries.LastAlive)
	default:
		s.within = min(s.searchedAt+tries.TryAliveFor, tries.LastAlive)
	}
	return Step{Do: Append, Within: s.within}
}

// tooLate tells whether a first try must not be sent any more.
func (s *Share) tooLate(age time.Duration, now time.Time) bool {
	return !now.Before(s.Deadline) || s.HasID && age > tries.SendUntil
}

// again has a share go on from a state after a wait.
func (s *Share) again(to state, wait time.Duration, grows bool) {
	s.state, s.wait = to, Step{Do: Wait, For: wait, Grows: grows}
}

// Searched reports a search: whether an earlier try has stored all tasks, if that is known.
func (s *Share) Searched(found, known bool) {
	switch {
	case !known:
		s.again(searching, 0, true)
	case found:
		s.finish(End{Kind: Stored})
	case s.Guard == Named && s.Tries > 0 && s.searchedAt < tries.AliveFor+tries.ClocksApart:
		s.again(searching, tries.AliveFor+tries.ClocksApart-s.searchedAt, true)
	case s.searchedAt > tries.Void && !s.Replaces:
		s.finish(End{Kind: NotStored, Why: TooOld, ForGood: true})
	case s.Guard == Named && s.searchedAt > tries.AppendUntil:
		s.again(searching, tries.Void-s.searchedAt+time.Millisecond, true)
	case s.Refused:
		s.finish(End{Kind: NotStored, Why: Refusal, ForGood: s.Closed})
	case s.full:
		s.finish(End{Kind: NotStored, Why: OverCap})
	default:
		s.state = counting
	}
}

// CountedAs reports whether the tasks are over a cap or a quota. A share with a try in transit goes on all the same.
func (s *Share) CountedAs(full bool) {
	s.Counted = !full
	switch {
	case !full, s.Guard == Named && s.uncertain:
		s.count()
	case s.Guard == Named && !s.searched: // it may be the repeat of one that is stored
		s.full, s.state = true, searching
	default:
		s.finish(End{Kind: NotStored, Why: OverCap})
	}
}

// count goes on behind counting.
func (s *Share) count() {
	s.state = appending
	if s.Guard == First {
		s.state = placing
	}
}

// Outcome is how an append went.
type Outcome uint8

// The outcomes.
const (
	// Acknowledged: the log has the message, and had none with its id. Duplicate: it had one before.
	Acknowledged Outcome = iota
	Duplicate
	// NotSent: the log does not have the message.
	NotSent
	// NoAnswer: it is not known whether the log has it.
	NoAnswer
	// NoRoom: the log has no space for tasks.
	NoRoom
	// Superseded: something was said about a key, or about the batch.
	Superseded
	// Broken: it cannot be encoded, or finds no place to wait. It was not sent.
	Broken
)

// Appended reports how an append went.
func (s *Share) Appended(o Outcome, now time.Time) {
	s.wait = Step{}
	switch o {
	case Acknowledged:
		s.end.Wrote = true
		s.acknowledged(now)
	case Duplicate:
		if s.Guard == First { // its own message, sent again
			s.acknowledged(now)
			return
		}
		s.state = verifying
	case NotSent:
		s.notSent()
	case NoAnswer:
		s.uncertain = true
		switch s.Guard {
		case First:
			s.again(resending, 0, true)
		case Named:
			s.again(searching, 0, true)
		case Keyed:
			s.again(checking, 0, true)
		}
	case NoRoom:
		s.noRoom()
	case Superseded:
		switch {
		case s.state == resending:
			s.notSent()
		case s.Guard != Keyed:
			s.state = readingClose
		case s.Batch: // a cluster refuses it also for what is on its way
			s.again(checking, InTransit, false)
		default:
			s.state = checking
		}
	case Broken:
		s.finish(End{Kind: NotStored, Why: Failed})
	}
}

// InTransit is about how long a message of a batch waits that a cluster has refused since another one was on its way.
const InTransit = 10 * time.Millisecond

// acknowledged goes on behind an acknowledgement: if it came late, the log may have taken the message too late, which its own time tells.
func (s *Share) acknowledged(now time.Time) {
	switch {
	case s.within == 0, now.Sub(s.Made) < s.within-tries.ClocksApart:
		s.finish(End{Kind: Stored})
	case s.Guard == Keyed:
		s.uncertain = true
		s.again(checking, 0, true)
	default:
		s.uncertain = true
		s.state = verifying
	}
}

func (s *Share) notSent() {
	switch {
	case s.state == resending: // a refusal says nothing about the first sending
		s.again(resending, 0, true)
	case s.Guard == First:
		s.state = placing
	case s.Guard == Named:
		s.again(searching, 0, true)
	default:
		s.again(appending, 0, true)
	}
}

func (s *Share) noRoom() {
	switch {
	case s.Guard == Keyed && !s.checked: // tasks that have their keys are answered all the same
		s.state = checking
	case s.Guard == Keyed, s.Guard == Named && !s.uncertain:
		s.finish(End{Kind: NotStored, Why: StorageFull})
	default:
		s.notSent()
	}
}

// Placed reports that a partition is chosen; none has space, or none takes tasks now.
func (s *Share) Placed(chosen, full bool) {
	switch {
	case chosen:
		s.state = appending
	case full:
		s.finish(End{Kind: NotStored, Why: StorageFull})
	default:
		s.again(placing, placeAgain, false)
	}
}

// placeAgain is how soon a share that found no healthy partition asks again.
const placeAgain = 250 * time.Millisecond

// Replace has a share that is not sent yet go to another partition.
func (s *Share) Replace() { s.state = placing }

// Verified reports whether the message was taken in time, if that is known.
func (s *Share) Verified(stored, known bool) {
	s.wait = Step{}
	switch {
	case !known && s.Guard == First:
		s.again(verifying, 0, true)
	case known && stored:
		s.finish(End{Kind: Stored})
	case s.Guard == First:
		s.uncertain = false
		s.finish(End{Kind: NotStored, Why: TakenLate})
	default: // the message is void, and its id is taken for a while
		s.again(searching, 0, true)
	}
}

// CloseRead reports whether the batch is closed in the partition. If that is not known, it is not.
func (s *Share) CloseRead(closed bool) {
	to := searching
	if s.Guard == First {
		to = placing
	}
	if closed {
		s.Refused, s.Closed = true, true
		if s.Guard == First {
			s.finish(End{Kind: NotStored, Why: Refusal, ForGood: true})
			return
		}
	}
	s.again(to, InTransit, false)
}

// Checks are what a check found.
type Checks struct {
	// Left tasks are not decided. Closed: the log takes none of them any more.
	Left   int
	Closed bool
	// Failed: some keys were not read. NoRoom: the log had no space for a replacement.
	Failed, NoRoom bool
}

// Checked reports a check of the keys.
func (s *Share) Checked(c Checks) {
	switch {
	case c.NoRoom:
		s.finish(End{Kind: NotStored, Why: StorageFull})
	case c.Failed:
		s.uncertain = s.uncertain || s.Conflicts // a task may have been replaced
		s.again(checking, 0, true)
	case c.Left == 0:
		s.finish(End{Kind: Stored})
	case c.Closed:
		s.uncertain = false
		s.finish(End{Kind: NotStored, Why: Refusal, ForGood: true})
	default:
		s.checked, s.state = true, appending
	}
}

// KeysChecked tells whether the keys of a share were free a moment ago.
func (s *Share) KeysChecked() bool { return s.checked }

// Expired reports that there is no time left: for the request, or for this process.
func (s *Share) Expired() Step {
	switch {
	case s.state == ended:
	case s.Guard == Keyed && s.state == checking:
		s.uncertain = true
		s.finish(End{Kind: Unknown})
	case s.Guard == Named, s.uncertain, s.state == verifying, s.state == resending:
		s.finish(End{Kind: Unknown})
	default:
		s.finish(End{Kind: NotStored, Why: Late})
	}
	return Step{Do: Finish, End: s.end}
}

// finish ends a share.
func (s *Share) finish(e End) Step {
	e.Wrote, e.Certain = s.end.Wrote, !s.uncertain || e.ForGood || e.Kind == NotStored && (e.Why == Refusal || e.Why == OverCap)
	s.end, s.state, s.wait = e, ended, Step{}
	return Step{Do: Finish, End: e}
}
