package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Kind is which rule was violated.
type Kind string

// The rules.
const (
	// Lost: an accepted task has no end in the archive, or a dead one no dead letter.
	Lost Kind = "lost"
	// Strange: a task is there that was never submitted, was refused, or has two ids.
	Strange Kind = "strange"
	// CompletedTwice: two attempts were informed that they completed the task.
	CompletedTwice Kind = "completed twice"
	// HeldTwice: two workers held the task at once, within their leases.
	HeldTwice Kind = "held twice"
	// CancelBroken: a task that did not run was cancelled with OK, and ran later or
	// did not end cancelled.
	CancelBroken Kind = "cancel broken"
	// NotCompleted: a completion got OK and the archive says something else.
	NotCompleted Kind = "not completed"
	// CopiesDiffer: two archived copies differ in state, attempts or times.
	CopiesDiffer Kind = "copies differ"
	// DeadUnheld: a task is dead and no worker ever held it.
	DeadUnheld Kind = "dead unheld"
	// BurnedUnheld: an attempt counts as timed out or lost, and no worker received it.
	BurnedUnheld Kind = "burned unheld"
	// BurnedInTime: an attempt counts as timed out or lost, and its worker had sent its outcome in time.
	BurnedInTime Kind = "burned in time"
	// Unfounded: a task was completed or cancelled though no client asked for it.
	Unfounded Kind = "unfounded"
	// OverLimit: more attempts of a limited type were held at once than allowed.
	OverLimit Kind = "over limit"
)

// Kinds lists the rules in the order of reports.
func Kinds() []Kind {
	return []Kind{Lost, Strange, CompletedTwice, HeldTwice, CancelBroken, NotCompleted, CopiesDiffer, DeadUnheld, BurnedUnheld, BurnedInTime, Unfounded, OverLimit}
}

// Violation is one rule violated by one task.
type Violation struct {
	Kind Kind
	What string
	// Story is the task's history from the ledger and from the archive.
	Story string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s\n%s", v.Kind, v.What, v.Story) }

// Report is what Check found.
type Report struct {
	// Violations, by rule and then by task.
	Violations []Violation
	// Ended is how many tasks have an end in the archive.
	Ended int
	// Open are the keys of the accepted tasks that have none.
	Open []string
	// Repeated is how many archived copies, dead letters apart, are there beside the
	// first of their task.
	Repeated int
}

// Count is how many violations there are of each rule.
func (r Report) Count() map[Kind]int {
	counts := map[Kind]int{}
	for _, v := range r.Violations {
		counts[v.Kind]++
	}
	return counts
}

// evidence is all that is known of one task.
type evidence struct {
	*Task
	archived, letters []Copy
}

// copies are the archived ones, then the dead letters.
func (e *evidence) copies() []Copy { return slices.Concat(e.archived, e.letters) }

// rules are those that look at one task; each returns what is wrong.
var rules = []struct {
	kind Kind
	find func(*evidence) []string
}{
	{Lost, lost},
	{Strange, strange},
	{CompletedTwice, completedTwice},
	{HeldTwice, heldTwice},
	{CancelBroken, cancelBroken},
	{NotCompleted, notCompleted},
	{CopiesDiffer, copiesDiffer},
	{DeadUnheld, deadUnheld},
	{BurnedUnheld, burnedUnheld},
	{BurnedInTime, burnedInTime},
	{Unfounded, unfounded},
}

// Check compares the ledger with the archived copies.
func Check(l Ledger, copies []Copy) Report {
	var r Report
	all, unknown := gather(l, copies)
	for _, c := range unknown {
		r.Violations = append(r.Violations, Violation{Strange, "it is archived and was never submitted", tellCopy(c)})
	}
	for _, e := range all {
		if len(e.archived) > 0 {
			r.Ended++
			r.Repeated += len(e.archived) - 1
		} else if e.Fate == Accepted {
			r.Open = append(r.Open, e.Key)
		}
		for _, rule := range rules {
			for _, what := range rule.find(e) {
				r.Violations = append(r.Violations, Violation{rule.kind, what, tell(e)})
			}
		}
	}
	r.Violations = append(r.Violations, overLimits(l.Limits, all)...)
	slices.SortStableFunc(r.Violations, func(a, b Violation) int {
		return cmp.Compare(slices.Index(Kinds(), a.Kind), slices.Index(Kinds(), b.Kind))
	})
	return r
}

// gather files the copies under their tasks, in the order of the ledger.
func gather(l Ledger, copies []Copy) (all []*evidence, unknown []Copy) {
	byKey := make(map[string]*evidence, len(l.Tasks))
	for _, t := range l.Tasks {
		e := &evidence{Task: t}
		all, byKey[t.Key] = append(all, e), e
	}
	for _, c := range copies {
		var key string
		_ = json.Unmarshal(c.Record.Payload, &key) // what is no key is unknown
		e := byKey[key]
		switch {
		case e == nil:
			unknown = append(unknown, c)
		case c.Letter:
			e.letters = append(e.letters, c)
		default:
			e.archived = append(e.archived, c)
		}
	}
	return all, unknown
}

// id is the printed id of a copy.
func (c Copy) id() string {
	id, err := ids.TaskIDFromBytes(c.Record.Id)
	if err != nil {
		return err.Error()
	}
	return id.String()
}

func (c Copy) state() yardv1.TaskState { return yardv1.TaskState(c.Record.State) }
