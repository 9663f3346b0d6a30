package scenario_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// keys are the order keys that a list tells of: the key, the first task and how many wait behind it.
func (w *world) keys(f yard.KeyFilter) (all []string) {
	w.t.Helper()
	for k, err := range w.client.OrderKeys(w.soon(), f) {
		testkit.NoError(w.t, err)
		all = append(all, fmt.Sprintf("%s %s+%d", k.Key, k.Head.ID, k.Waiting))
	}
	return all
}

// untilKeys waits until a list tells of these.
func (w *world) untilKeys(f yard.KeyFilter, want ...string) {
	w.t.Helper()
	w.eventually(func() error {
		if got := w.keys(f); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("the order keys are %q, want %q", got, want)
		}
		return nil
	})
}

// untilFirst waits until the log says that it is the turn of a task.
func (w *world) untilFirst(id string) {
	w.t.Helper()
	w.eventually(func() error {
		if task := w.get(id); task.State != yardv1.TaskState_TASK_STATE_READY || task.AwaitsTurn {
			return fmt.Errorf("task %s is %s and waits for its turn: %v", id, task.State, task.AwaitsTurn)
		}
		return nil
	})
}

// TestOperatorsSeeAndChangeOrderKeys: which are stuck and how many wait there; the first task is tried again, or becomes a dead letter and can be redriven,
// and the key goes on.
func TestOperatorsSeeAndChangeOrderKeys(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		once := func(kind, key string) *yardv1.NewTask {
			return &yardv1.NewTask{Type: kind, OrderKey: key, OrderPolicy: yardv1.OrderPolicy_ORDER_POLICY_BLOCK, Retry: &yardv1.RetryPolicy{MaxAttempts: 1}}
		}
		all := w.submit(once("a1", "a"), once("a2", "a"), once("a3", "a"), once("b1", "b"))
		equal(t, "failed", w.fail(w.takeOne("a1"), &yardv1.Failure{Message: "no route", ErrorType: "network"}), "OK")
		stuck := fmt.Sprintf("a %s+2", all[0])
		w.untilKeys(yard.KeyFilter{Blocked: true}, stuck)
		w.untilKeys(yard.KeyFilter{Waiting: true}, stuck)
		w.untilKeys(yard.KeyFilter{}, fmt.Sprintf("b %s+0", all[3]), stuck)
		k, err := w.client.OrderKey(w.soon(), "a")
		if err != nil || k.Reason != "no route" || !k.Head.Blocked || k.Since.IsZero() {
			t.Fatalf("%+v: %v", k, err)
		}

		id, err := w.client.UnblockKey(w.soon(), "a", yard.KeyOptions{By: "ann", Retry: &yard.RetryPolicy{MaxAttempts: 2}})
		equal(t, "unblocked", fmt.Sprint(id, err), fmt.Sprint(all[0], nil))
		running := w.takeOne("a1")
		_, err = w.client.SkipKey(w.soon(), "a", yard.KeyOptions{})
		equal(t, "skipped while it runs", string(fault.CodeOf(err)), "FAILED_PRECONDITION")
		equal(t, "failed again", w.fail(running, &yardv1.Failure{Message: "no route", ErrorType: "network"}), "OK")
		w.untilKeys(yard.KeyFilter{Blocked: true}, stuck)

		for range 2 { // a repeat does not skip the next one
			id, err = w.client.SkipKey(w.soon(), "a", yard.KeyOptions{By: "ann", Reason: "closed", TaskID: all[0]})
			if err != nil && fault.CodeOf(err) != fault.FailedPrecondition {
				t.Fatal(id, err)
			}
		}
		w.deadLetter(list, all[0])
		letter, err := w.client.GetDeadLetter(w.soon(), all[0])
		if err != nil || letter.Events[len(letter.Events)-1].Message != "skipped by ann: closed" || letter.ErrorType != "network" {
			t.Fatalf("the letter is %+v: %v", letter, err)
		}
		w.untilKeys(yard.KeyFilter{Waiting: true}, fmt.Sprintf("a %s+1", all[1]))
		second := w.takeOne("a2")

		req := &yardv1.SkipKeyRequest{OrderKey: "a", TaskId: all[1], CancelRunning: true}
		equal(t, "asked to stop", must[yardv1.SkipKeyResponse](w, "keys.skip", req).CancelRequested, true)
		equal(t, "stopped", w.fail(second, &yardv1.Failure{}), "OK")
		equal(t, "it ended as", w.ended(all[1]).State.Name(), "cancelled")
		equal(t, "the next one", w.complete(w.takeOne("a3")), "OK")
		equal(t, "redriven", w.redrive(&yardv1.RedriveRequest{TaskIds: []string{all[0]}}).Verdicts[0].Code, "OK")
		equal(t, "it is back", w.complete(w.takeOne("a1")), "OK")
		w.untilKeys(yard.KeyFilter{}, fmt.Sprintf("b %s+0", all[3]))
		_, err = w.client.OrderKey(w.soon(), "a")
		equal(t, "no such key", string(fault.CodeOf(err)), "NOT_FOUND")
	})
}

// TestARepeatedSkipIsAnsweredAlike, also when its task has left memory, and by another owner.
func TestARepeatedSkipIsAnsweredAlike(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		first := w.submitOne(&yardv1.NewTask{Type: "x", OrderKey: "a"})
		next := w.submitOne(&yardv1.NewTask{Type: "y", OrderKey: "a"})
		w.untilKeys(yard.KeyFilter{}, fmt.Sprintf("a %s+1", first))
		w.untilFirst(first)
		req := &yardv1.SkipKeyRequest{OrderKey: "a", TaskId: first, RequestId: ids.NewRequestID(time.Now()).String(), Tries: 1}
		for range 3 {
			equal(t, "skipped", must[yardv1.SkipKeyResponse](w, "keys.skip", req).TaskId, first)
			w.deadLetter(list, first)
		}
		w.untilKeys(yard.KeyFilter{}, fmt.Sprintf("a %s+0", next))
		equal(t, "the next one", w.complete(w.takeOne("y")), "OK")
	})
}
