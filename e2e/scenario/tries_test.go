package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// quick is a retry policy without long waits, and with the default number of attempts.
var quick = &yardv1.RetryPolicy{InitialIntervalMs: 10, MaxIntervalMs: 50}

// TestPoisonAmongGoodTasks: every good task completes at its first attempt; one whose payload does not decode is dead after one attempt,
// one whose handler fails or panics after the five of the default. SEEDS 2.3.
func TestPoisonAmongGoodTasks(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		const tasks = 300
		type input struct{ N int }
		kinds := map[int]string{3: "undecodable", 5: "failing", 7: "panicking"}
		kind := func(i int) string { return kinds[i%10] } // the others are good
		all := make([]*yardv1.NewTask, tasks)
		for i := range all {
			payload := fmt.Sprintf(`{"N":%d}`, i)
			if kind(i) == "undecodable" {
				payload = `["no object"]`
			}
			all[i] = &yardv1.NewTask{Type: "x", Payload: jsonPayload(payload), Retry: quick, Priority: int32(i%5 + 1)}
		}
		submitted := w.submit(all...)
		d := newDeliveries()
		defer w.work(list, func(k *yard.Worker) {
			yard.Handle(k, "x", func(ctx context.Context, in input) (struct{}, error) {
				d.note(yard.Info(ctx), 0)
				switch kind(in.N) {
				case "failing":
					return struct{}{}, errors.New("no route to the bank")
				case "panicking":
					panic("out of cheese")
				}
				return struct{}{}, nil
			})
		}, yard.WithConcurrency(20))()
		type end struct {
			state, errorType string
			failures         int32
			runs             int
		}
		ends := map[string]end{
			"":            {"completed", "", 0, 1},
			"undecodable": {"dead", yard.TypeBadInput, 1, 0},
			"failing":     {"dead", "error", 5, 5},
			"panicking":   {"dead", yard.TypePanic, 5, 5},
		}
		for i, id := range submitted {
			task := w.ended(id)
			if got := (end{stateOf(task), task.ErrorType, task.Failures, d.of(id)}); got != ends[kind(i)] {
				t.Errorf("task %d, %s: %+v, want %+v", i, id, got, ends[kind(i)])
			}
		}
		w.emptied()
		d.print(t)
	})
}

// TestAnAttemptLongerThanItsDeadline: its handler's context ends at the deadline. Where the policy has one attempt, the task is dead then, and
// runs no more, whatever the handler still says. SEEDS 2.3.
func TestAnAttemptLongerThanItsDeadline(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		const tasks = 20
		d := newDeliveries()
		ended, causes := make(chan struct{}), make(chan error, tasks)
		stop := w.work(list, func(k *yard.Worker) {
			yard.Handle(k, "long", func(ctx context.Context, _ struct{}) (struct{}, error) {
				d.note(yard.Info(ctx), 0)
				<-ctx.Done()
				causes <- context.Cause(ctx)
				<-ended
				return struct{}{}, nil // too late
			})
		}, yard.WithConcurrency(2*tasks))
		all := many(tasks, &yardv1.NewTask{Type: "long", StartToCloseMs: 300, Retry: &yardv1.RetryPolicy{MaxAttempts: 1}})
		submitted := w.submit(all...)
		for _, id := range submitted {
			w.ended(id)
		}
		close(ended)
		w.emptied()
		stop() // what the handlers returned has been sent
		for _, id := range submitted {
			task := w.get(id)
			want(t, task, "dead", "submitted started timed_out dead")
			equal(t, "error type", task.ErrorType, "timeout")
			equal(t, "runs", d.of(id), 1)
			if cause := <-causes; cause != context.DeadlineExceeded && cause != yard.ErrLostAttempt {
				t.Errorf("a handler's context ended with %v", cause)
			}
		}
		d.print(t)
	})
}

// TestAClassifierDecidesAboutRetries: what the log has is what the classifier says of an error: dead at once, later, or by the policy.
func TestAClassifierDecidesAboutRetries(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const later = 2 * time.Hour
		gone, busy := errors.New("no such account"), errors.New("the partner is busy")
		d := newDeliveries()
		defer w.work(list, func(k *yard.Worker) {
			yard.Handle(k, "pay", func(ctx context.Context, how string) (struct{}, error) {
				d.note(yard.Info(ctx), 0)
				switch how {
				case "gone":
					return struct{}{}, fmt.Errorf("pay: %w", gone)
				case "busy":
					return struct{}{}, busy
				}
				return struct{}{}, errors.New("no route")
			})
		}, yard.WithClassifier(yard.NonRetryableErrors(gone), func(_ *yard.Attempt, err error) error {
			if errors.Is(err, busy) {
				return yard.RetryAfter(err, later)
			}
			return err
		}))()
		submit := func(how string) string {
			return w.submitOne(&yardv1.NewTask{Type: "pay", Payload: jsonPayload(`"` + how + `"`), Retry: quick})
		}
		dead, waits, policy := submit("gone"), submit("busy"), submit("else")
		want(t, w.ended(dead), "dead", "submitted started failed dead")
		equal(t, "failures by the policy", w.ended(policy).Failures, 5)
		parked := w.parked(waits)
		for _, e := range parked.Events {
			if kindOf(e) == "failed" && e.DueAtMs-e.AtMs != later.Milliseconds() {
				t.Errorf("the next attempt is %d ms after the failure, want %v", e.DueAtMs-e.AtMs, later)
			}
		}
		equal(t, "failures of the one that waits", parked.Failures, 1)
		equal(t, "runs", fmt.Sprint(d.of(dead), d.of(waits), d.of(policy)), "1 1 5")
		equal(t, "the verdict on its cancel", w.cancel(waits).Code, "OK")
		d.print(t)
	})
}
