package scenario_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestADrainedTasklistTakesNothingNew: submits to it are refused and store nothing; what was accepted starts, is tried again and comes
// back from a delay; repeats of a stored submit are answered as before; other tasklists go on; resumed, it takes tasks.
func TestADrainedTasklistTakesNothingNew(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		for _, name := range []string{"x", "slow"} {
			w.putType(yard.TaskType{Name: name, Retry: &yard.RetryPolicy{MaxAttempts: 3, InitialInterval: 10 * time.Millisecond}})
		}
		counted := &yardv1.SubmitRequest{RequestId: ids.NewRequestID(time.Now()).String(), Tries: 1, Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "counted"}}}
		uncounted := &yardv1.SubmitRequest{RequestId: ids.NewRequestID(time.Now()).String(), Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "counted"}}}
		repeats := []*yardv1.SubmitRequest{counted, uncounted}
		var first []string
		for _, req := range repeats {
			first = append(first, must[yardv1.SubmitResponse](w, "tasks.submit", req).Results[0].TaskId)
		}
		failing := w.submitOne(&yardv1.NewTask{Type: "x"})
		running := w.takeOne("x")
		delayed := w.submitOne(&yardv1.NewTask{Type: "slow", DelayMs: 3000})

		p, err := w.client.Drain(w.soon(), yard.OfTasklist(list), yard.PauseOptions{Reason: "it moves", By: "ann"})
		if err != nil || p.Since.IsZero() || p.By != "ann" {
			t.Fatalf("%+v %v", p, err)
		}
		w.eventually(func() error { // another frontend may hear of it a moment later
			_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "probe"}}})
			if fault.CodeOf(err) != fault.FailedPrecondition || fault.From(err).Path != "/tasklist" {
				return errors.New("a task is still accepted")
			}
			return nil
		})
		counted.Tries = 2
		for i, req := range repeats {
			equal(t, "repeated", must[yardv1.SubmitResponse](w, "tasks.submit", req).Results[0].TaskId, first[i])
		}
		equal(t, "fails", w.fail(running, &yardv1.Failure{}), "OK")
		again := w.takeOne("x")
		equal(t, "tried again", again.TaskId, failing)
		equal(t, "the second attempt", w.complete(again), "OK")
		slow := w.takeOne("slow")
		equal(t, "back from its delay", slow.TaskId, delayed)
		equal(t, "the delayed one", w.complete(slow), "OK")
		other := w.submitOne(&yardv1.NewTask{Type: "x", Tasklist: "other"})
		equal(t, "the other tasklist", w.complete(w.someOf("other", 1)...), "OK")
		want(t, w.ended(other), "completed", "submitted started completed")

		d, err := w.client.DescribeTasklist(w.soon(), list)
		if err != nil || d.Drain == nil || d.Drain.Reason != "it moves" || d.Pause != nil {
			t.Errorf("%+v %v", d, err)
		}
		testkit.NoError(t, testkit.Err(w.client.ResumeDrained(w.soon(), yard.OfTasklist(list))))
		w.eventually(func() error {
			_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "after"}}})
			return err
		})
		_, err = w.client.ResumeDrained(w.soon(), yard.OfTasklist(list))
		refused(t, err, fault.NotFound)
	})
}

// TestADrainOfATypeEndsByItself: a request with one task of the type is refused whole, and after the drain it is accepted.
func TestADrainOfATypeEndsByItself(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		if p, err := w.client.Drain(w.soon(), yard.OfType("x"), yard.PauseOptions{}); err != nil || !p.Until.IsZero() {
			t.Fatalf("%+v %v", p, err)
		}
		both := &yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "y"}, {Type: "x"}}}
		w.eventually(func() error {
			_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: "other", Tasks: both.Tasks})
			if fault.CodeOf(err) != fault.FailedPrecondition || fault.From(err).Path != "/tasks/1/type" {
				return fmt.Errorf("got %v", err)
			}
			return nil
		})
		w.nothing(list)
		if p, err := w.client.Drain(w.soon(), yard.OfType("x"), yard.PauseOptions{For: time.Second}); err != nil || p.Until.Sub(p.Since) != time.Second {
			t.Fatalf("%+v %v", p, err)
		}
		w.eventually(func() error {
			_, err := w.handIn(both)
			return err
		})
		equal(t, "after the drain", w.complete(w.take(2)...), "OK OK")
	})
}
