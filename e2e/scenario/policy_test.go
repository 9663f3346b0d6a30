package scenario_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// last says why a task has ended.
func last(task *yardv1.Task) string {
	e := task.Events[len(task.Events)-1]
	return e.Message + ", " + e.ErrorType
}

// TestAPolicyTellsErrorsApart: an error type of the type's list is the end, of the task's list instead if it has one; another has attempts of its own.
func TestAPolicyTellsErrorsApart(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "pay", Retry: &yard.RetryPolicy{
			NonRetryable: []string{"card_stolen"}, ByError: []yard.ErrorRetry{{ErrorType: "busy", InitialInterval: 20 * time.Millisecond, MaxAttempts: 2}},
			MaxAttempts: 5, InitialInterval: time.Hour, MaxInterval: time.Hour, Jitter: yard.JitterNone,
		}})
		stolen := w.submitOne(&yardv1.NewTask{Type: "pay"})
		equal(t, "verdict", w.fail(w.takeOne(), &yardv1.Failure{Message: "by its owner", ErrorType: "card_stolen", DelayMs: 60_000}), "OK")
		task := w.ended(stolen)
		want(t, task, "dead", "submitted started failed dead")
		equal(t, "reason", last(task), "its error type is non_retryable in its policy, card_stolen")
		equal(t, "error", task.ErrorMessage, "by its owner")
		letter := w.deadLetter(list, stolen)
		equal(t, "its policy is kept", len(letter.Policy.GetNonRetryable())+len(letter.Policy.GetByError())+int(letter.Policy.GetJitter()), 1+1+4)

		busy := w.submitOne(&yardv1.NewTask{Type: "pay"})
		for range 2 {
			equal(t, "verdict", w.fail(w.takeOne(), &yardv1.Failure{ErrorType: "busy"}), "OK")
		}
		task = w.ended(busy)
		want(t, task, "dead", "submitted started failed started failed dead")
		equal(t, "wait", task.Events[2].DueAtMs-task.Events[2].AtMs, 20)

		own := w.submitOne(&yardv1.NewTask{Type: "pay", Retry: &yardv1.RetryPolicy{NonRetryable: []string{"other"}}})
		equal(t, "verdict", w.fail(w.takeOne(), &yardv1.Failure{ErrorType: "card_stolen"}), "OK")
		task = w.parked(own)
		equal(t, "wait", task.DueAtMs-task.Events[2].AtMs, 3_600_000)
	})
}

// TestALostAttemptMayBeTheEnd, or a failure; so may one that takes too long.
func TestALostAttemptMayBeTheEnd(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		submit := func(beat int64, p *yardv1.RetryPolicy) string {
			id := w.submitOne(&yardv1.NewTask{Type: "x", HeartbeatTimeoutMs: beat, StartToCloseMs: 1000, Retry: p})
			w.takeOne()
			return id
		}
		lost := submit(300, &yardv1.RetryPolicy{OnLost: yardv1.OnLost_ON_LOST_DEAD})
		late := submit(0, &yardv1.RetryPolicy{OnTimeout: yardv1.OnTimeout_ON_TIMEOUT_DEAD})
		failed := submit(300, &yardv1.RetryPolicy{OnLost: yardv1.OnLost_ON_LOST_FAIL, InitialIntervalMs: 3_600_000, MaxIntervalMs: 3_600_000})
		task := w.ended(lost)
		want(t, task, "dead", "submitted started lost dead")
		equal(t, "reason", last(task), "its worker fell silent, and on_lost of its policy is dead, lost")
		task = w.ended(late)
		want(t, task, "dead", "submitted started timed_out dead")
		equal(t, "reason", last(task), "its attempt took too long, and on_timeout of its policy is dead, timeout")
		task = w.parked(failed)
		want(t, task, "backoff", "submitted started lost parked")
		equal(t, "failures", task.Failures, 1)
		equal(t, "error", task.ErrorType, "lost")
		w.nothing(list)
	})
}

// TestDeliveriesAreLimited: a task that silences its workers ends; what was handed back does not count.
func TestDeliveriesAreLimited(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", HeartbeatTimeoutMs: 300, Retry: &yardv1.RetryPolicy{MaxDeliveries: 2}})
		w.takeOne()
		second := w.takeOne()
		handedBack := second.Attempt
		equal(t, "verdict", w.fail(second, &yardv1.Failure{NotStarted: true}), "OK")
		w.takeOne()
		task := w.ended(id)
		want(t, task, "dead", "submitted started lost started handed_back started lost dead", handedBack)
		equal(t, "reason", task.ErrorType, "max_deliveries")
		equal(t, "failures", task.Failures, 0)
		w.deadLetter(list, id)
		w.nothing(list)
	})
}

// TestPoliciesSurviveARestart, of tasks that run, that wait in the timer store, and that were handed back before.
func TestPoliciesSurviveARestart(t *testing.T) {
	testkit.Slow(t, "restarts a system of its own")
	eachKind(t, func(t *testing.T, kind stack.Tables) {
		cfg := stack.Config{Tables: kind, DataDir: t.TempDir()}
		w := enter(t, own(t, cfg))
		policy := &yardv1.RetryPolicy{NonRetryable: []string{"gone"}, MaxDeliveries: 2}
		id := w.submitOne(&yardv1.NewTask{Type: "runs", Retry: policy})
		first := w.takeOne("runs")
		handedBack := first.Attempt
		equal(t, "verdict", w.fail(first, &yardv1.Failure{NotStarted: true}), "OK")
		runs := w.takeOne("runs")
		waits := w.submitOne(&yardv1.NewTask{Type: "waits", Retry: policy, DelayMs: 3000})
		w.reach(waits, "waiting")
		w = w.restarted(cfg)
		w.eventually(func() error {
			_, err := w.raw("types.list", "{}")
			return err
		})
		equal(t, "verdict", w.fail(runs, &yardv1.Failure{ErrorType: "busy", DelayMs: 1}), "OK")
		equal(t, "verdict", w.fail(w.takeOne("runs"), &yardv1.Failure{ErrorType: "busy", DelayMs: 1}), "OK")
		task := w.ended(id)
		want(t, task, "dead", "submitted started handed_back started failed started failed dead", handedBack)
		equal(t, "reason", task.ErrorType, "max_deliveries")
		equal(t, "verdict", w.fail(w.takeOne("waits"), &yardv1.Failure{ErrorType: "gone"}), "OK")
		want(t, w.ended(waits), "dead", "submitted parked fired started failed dead")
	})
}
