package taskstate

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// endBy applies an end by hand.
func endBy(t *Task, as State, request, seq uint64, now int64) (Verdict, Effects) {
	return Apply(t, &Event{
		Kind: Ended, ID: t.ID, Domain: t.Domain, Message: "ended by ann", Update: &Update{Request: request, EndState: as, Payload: Blob{Data: []byte("7")}}, Seq: seq,
	}, now)
}

// TestATaskIsEndedByHand wherever it is: its slot is free, the history says who did it, and a repeat is answered alike and changes nothing.
func TestATaskIsEndedByHand(t *testing.T) {
	for _, from := range []State{Waiting, Ready, Running, Backoff} {
		for _, as := range []State{Completed, Dead, Cancelled} {
			name, task := fmt.Sprint(from, " as ", as), in(from)
			v, fx := endBy(task, as, 77, 90, t0+10)
			last := task.Steps[len(task.Steps)-1]
			testkit.Equal(t, name+": verdict", v, Verdict{Revision: 2})
			testkit.Equal(t, name+": end", fmt.Sprint(task.State, task.FinishedAt, fx.Finish, fx.Park, fx.Trigger), fmt.Sprint(as, t0+10, true, false, false))
			testkit.Equal(t, name+": message", last.Message, "ended by ann")
			testkit.Equal(t, name+": slot", fmt.Sprint(fx.Release), map[bool]string{true: fmt.Sprint(NewPath("type/send")), false: fmt.Sprint((*Path)(nil))}[from == Running])
			testkit.Equal(t, name+": result", string(task.Result.Data), map[bool]string{true: "7"}[as == Completed])
			testkit.Equal(t, name+": class of error", task.ErrType, map[bool]string{true: "ended"}[as == Dead])
			again, fx := endBy(task, as, 77, 95, t0+20)
			testkit.Equal(t, name+": repeated", fmt.Sprint(again, fx, task.FinishedAt), fmt.Sprint(v, Effects{}, t0+10))
			refused, fx := endBy(task, as, 78, 96, t0+20)
			testkit.Equal(t, name+": by another request", fmt.Sprint(refused.Code, fx), fmt.Sprint(fault.FailedPrecondition, Effects{}))
		}
	}
}

// TestI4_AnOutcomeAfterAnEndByHandIsStale: the attempt is over. One that came before is the end of the task.
func TestI4_AnOutcomeAfterAnEndByHandIsStale(t *testing.T) {
	for _, kind := range []Kind{Succeeded, Failed, Released, Heartbeat, Expired} {
		task := in(Running)
		endBy(task, Dead, 77, 90, t0+10)
		v, fx := send(task, kind, t0+20_000)
		testkit.Equal(t, kind.String(), fmt.Sprint(v.Code, fx, task.State), fmt.Sprint(fault.Stale, Effects{}, Dead))
	}
	task := in(Running)
	send(task, Succeeded, t0+10)
	v, _ := endBy(task, Dead, 77, 90, t0+20)
	testkit.Equal(t, "after the outcome", fmt.Sprint(v.Code, task.State), fmt.Sprint(fault.FailedPrecondition, Completed))
}

// TestATaskIsEndedOnlyAsWhatAnOperatorMayWish, whatever the log holds.
func TestATaskIsEndedOnlyAsWhatAnOperatorMayWish(t *testing.T) {
	for _, as := range []State{None, Ready, Lapsed, Lapsed + 1} {
		task := in(Running)
		v, fx := endBy(task, as, 77, 90, t0+10)
		testkit.Equal(t, as.String(), fmt.Sprint(v.Code, fx, task.State, task.Revision()), fmt.Sprint(fault.InvalidArgument, Effects{}, Running, 1))
	}
}

// TestADeadTaskThatBlockedItsKeyDoesNotBlockAgain: an operator has decided.
func TestADeadTaskThatBlockedItsKeyDoesNotBlockAgain(t *testing.T) {
	task := blocked()
	v, fx := endBy(task, Dead, 77, 90, t0+10)
	testkit.Equal(t, "end", fmt.Sprint(v.Code, task.State, fx.Finish), fmt.Sprint("", Dead, true))
}
