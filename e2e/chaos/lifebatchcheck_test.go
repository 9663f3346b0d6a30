package chaos_test

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// filedWithin is how long the end of a redriven member may take to be counted, faults included. Those that ended later may count as dead or as that.
const filedWithin = 2 * time.Minute

// bounds are how many tasks of a batch there may be, at least and at most.
type bounds struct{ least, most int64 }

// wrong tells what of a batch that is over is not as its members are: ends are those that are known. One of a submit without an answer that never ran may be
// there or not.
func (b *lifeBatch) wrong(info *yard.BatchInfo, ends []*lifeEnd) (all []string) {
	fail := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if info.State != yard.BatchCompleted || info.CancelRequested != b.cancel {
		fail("it is %s, cancel requested %v", info.State, info.CancelRequested)
	}
	found := map[int]string{}
	counts := map[yardv1.TaskState]*bounds{}
	for state := range endOf {
		counts[state] = &bounds{}
	}
	for _, e := range ends {
		n := e.value.N
		if e.task != nil {
			n = e.task.n // another submit may have given it its input
		}
		if other := found[n]; other != "" && !e.lostReplace {
			fail("member %d is there as %s and as %s", n, other, e.id)
		}
		found[n] = e.id
		may := e.countedAs(info.EndedAt)
		if len(may) == 0 {
			fail("%s", e.tell("it had not ended when the batch was over", nil))
		}
		for _, state := range may {
			counts[state].most++
			if len(may) == 1 {
				counts[state].least++
			}
		}
		if b.swept && e.task != nil && e.task.answered.Before(b.asked) && len(e.starts) > 0 && e.starts[0] > b.answered.Add(clocksApart).UnixMilli() {
			fail("%s", e.tell("the rest was cancelled, and it began", nil))
		}
	}
	unknown := int64(0)
	for _, o := range b.members {
		switch {
		case found[o.n] != "":
		case o.fate == accepted && o.outcome == yard.OutcomeCreated:
			fail("member %d was accepted as %s and is not of it", o.n, o.id)
		case o.fate == unsure || o.repeated():
			unknown++
		}
	}
	n := int64(len(ends))
	if info.Tasks < n || info.Tasks > n+unknown || info.Active != 0 {
		fail("%d members are known, and %d may be there", n, unknown)
	}
	if sum := info.Completed + info.Dead + info.Cancelled + info.Expired; sum != info.Tasks {
		fail("its counts are %d", sum)
	}
	for state, got := range map[yardv1.TaskState]int64{
		yardv1.TaskState_TASK_STATE_COMPLETED: info.Completed, yardv1.TaskState_TASK_STATE_DEAD: info.Dead,
		yardv1.TaskState_TASK_STATE_CANCELLED: info.Cancelled, yardv1.TaskState_TASK_STATE_EXPIRED: info.Expired,
	} {
		if want := counts[state]; got < want.least || got > want.most+unknown {
			fail("%d are %s, %d to %d must be, and %d may be there", got, state.Name(), want.least, want.most, unknown)
		}
	}
	return all
}

// countedAs is as what a member counts in a batch that was over at an instant: by the last of its stays that had ended then, and one before if that one may
// not have been counted yet.
func (e *lifeEnd) countedAs(over time.Time) (may []yardv1.TaskState) {
	for _, v := range e.Events {
		if !isEnd(v.Kind) {
			continue
		}
		at := time.UnixMilli(v.AtMs)
		switch {
		case at.After(over.Add(clocksApart)):
			continue
		case at.Before(over.Add(-filedWithin)):
			may = nil
		}
		for state, kind := range endOf {
			if kind == v.Kind {
				may = append(may, state)
			}
		}
	}
	if len(may) > 1 && allSame(may) {
		may = may[:1]
	}
	return may
}

func allSame(states []yardv1.TaskState) bool {
	for _, s := range states {
		if s != states[0] {
			return false
		}
	}
	return true
}
