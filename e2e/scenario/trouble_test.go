package scenario_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/operate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// untilStuck waits until a question is answered with these tasks, in order.
func (w *world) untilStuck(q operate.StuckQuery, ids ...string) (all []operate.StuckTask) {
	w.t.Helper()
	w.eventually(func() error {
		stuck, err := operate.Stuck(w.soon(), w.client, q)
		testkit.NoError(w.t, err)
		var got []string
		for _, s := range stuck.Tasks {
			got = append(got, s.TaskID)
		}
		if all = stuck.Tasks; fmt.Sprint(got, stuck.Found) != fmt.Sprint(ids, len(ids)) {
			return fmt.Errorf("%d are stuck, %v, want %v", stuck.Found, got, ids)
		}
		return nil
	})
	return all
}

// TestOperatorsSeeAttemptsThatRunForTooLong, the oldest first, by the time that they name, or that of the type; of another domain none.
func TestOperatorsSeeAttemptsThatRunForTooLong(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		other := enter(t, w.stack)
		w.submit(many(200, &yardv1.NewTask{Type: "waits"})...)
		mail := w.submitOne(&yardv1.NewTask{Type: "mail", Group: "acme"})
		w.takeOne("mail")
		film := w.submitOne(&yardv1.NewTask{Type: "film"})
		w.takeOne("film")

		any := operate.StuckQuery{RunningFor: time.Millisecond}
		first := w.untilStuck(any, mail, film)[0]
		equal(t, "the first", fmt.Sprint(first.Type, first.Tasklist, first.Group, first.StuckAfter, first.Grants), fmt.Sprint("mail", list, "acme", time.Millisecond, 1))
		if runs := time.Since(first.Started); runs < 0 || runs > within || first.RunningFor <= 0 || !first.Deadline.After(first.Started) {
			t.Errorf("%+v", first)
		}
		w.untilStuck(operate.StuckQuery{RunningFor: time.Millisecond, Type: "film"}, film)
		w.untilStuck(operate.StuckQuery{RunningFor: time.Millisecond, Tasklist: "elsewhere"})
		w.untilStuck(operate.StuckQuery{})
		other.untilStuck(any)

		w.putType(yard.TaskType{Name: "mail", StuckAfter: time.Second})
		equal(t, "by its type", w.untilStuck(operate.StuckQuery{}, mail)[0].StuckAfter, time.Second)
		testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, Events: true, StuckAfter: 2 * time.Second})))
		w.untilStuck(operate.StuckQuery{}, mail, film)
	})
}

// TestOperatorsEndTasksByHand wherever they are, each once. A worker whose attempt is over gets STALE.
func TestOperatorsEndTasksByHand(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		end := func(as yard.State, id string) string {
			t.Helper()
			return string(fault.CodeOf(operate.End(w.soon(), w.client, operate.Ending{State: as, By: "ann", Reason: "by phone"}, id)))
		}
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		p := w.takeOne("x")
		testkit.NoError(t, operate.End(w.soon(), w.client, operate.Ending{State: yard.StateCompleted, Result: json.RawMessage(`{"sent":true}`), By: "ann", Reason: "by phone"}, id))
		equal(t, "an outcome", w.complete(p), "STALE")
		equal(t, "a heartbeat", w.beat(p).Code, "STALE")
		task := w.ended(id)
		want(t, task, "completed", "submitted started completed")
		equal(t, "result", string(task.Result.Data), `{"sent":true}`)
		equal(t, "history", task.Events[2].Message, "ended by ann: by phone")
		equal(t, "once more", end(yard.StateDead, id), "FAILED_PRECONDITION")

		waiting := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 3_600_000})
		w.reach(waiting, "waiting")
		other := enter(t, w.stack)
		equal(t, "by another domain", string(fault.CodeOf(operate.End(w.soon(), other.client, operate.Ending{State: yard.StateDead}, waiting))), "NOT_FOUND")
		equal(t, "a delayed task", end(yard.StateDead, waiting), "")
		w.deadLetter(list, waiting)
		letter, err := w.client.GetDeadLetter(w.soon(), waiting)
		testkit.NoError(t, err)
		equal(t, "class of error", letter.ErrorType, "ended")
		equal(t, "redriven", w.redrive(&yardv1.RedriveRequest{TaskIds: []string{waiting}}).Redriven, 1)
		equal(t, "its next attempt", w.complete(w.takeOne("x")), "OK")

		backoff := w.submitOne(&yardv1.NewTask{Type: "x", Retry: &yardv1.RetryPolicy{InitialIntervalMs: 9_000}})
		equal(t, "verdict", w.fail(w.takeOne("x"), &yardv1.Failure{Message: "no"}), "OK")
		w.reach(backoff, "backoff")
		equal(t, "a task that failed", end(yard.StateCancelled, backoff), "")
		want(t, w.ended(backoff), "cancelled", "submitted started failed cancelled")
		w.nothing(list)
	})
}

// TestAnEndByHandFreesTheSlotAndTheOrderKey: the next task starts, and the handler hears that its attempt is over.
func TestAnEndByHandFreesTheSlotAndTheOrderKey(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "long", MaxConcurrency: 1})
		started, cause := make(chan string, 2), make(chan error, 2)
		w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "long", func(ctx context.Context, _ struct{}) (struct{}, error) {
				started <- yard.Info(ctx).TaskID
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return struct{}{}, ctx.Err()
			})
		})
		long := yard.Task{Type: "long", Tasklist: list, OrderKey: "account-7", HeartbeatTimeout: 6 * time.Second}
		first, err := w.client.Submit(w.soon(), long)
		testkit.NoError(t, err)
		equal(t, "started", <-started, first)
		second, err := w.client.Submit(w.soon(), long)
		testkit.NoError(t, err)
		testkit.NoError(t, operate.End(w.soon(), w.client, operate.Ending{State: yard.StateDead}, first))
		if err := <-cause; !errors.Is(err, yard.ErrLostAttempt) {
			t.Errorf("the handler ended by %v", err)
		}
		equal(t, "then started", <-started, second)
		testkit.NoError(t, operate.End(w.soon(), w.client, operate.Ending{State: yard.StateCancelled}, second))
		equal(t, "state", stateOf(w.ended(second)), "cancelled")
	})
}
