package scenario_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestANewPolicyOfATypeHoldsForWhatIsQueued, within seconds: for attempts that start, and for those that fail. What a task has set itself stays.
func TestANewPolicyOfATypeHoldsForWhatIsQueued(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "x", Retry: &yard.RetryPolicy{MaxAttempts: 9}, StartToClose: 50 * time.Second})
		runs := w.submitOne(&yardv1.NewTask{Type: "x"})
		p := w.takeOne()
		testkit.MustEqual(t, "task", p.TaskId, runs)
		equal(t, "as it was", p.MaxAttempts, 9)
		own := w.submitOne(&yardv1.NewTask{Type: "x", Retry: &yardv1.RetryPolicy{MaxAttempts: 7}, DelayMs: 60_000})
		for range 40 {
			w.submitOne(&yardv1.NewTask{Type: "x"})
		}
		w.putType(yard.TaskType{Name: "x", Retry: &yard.RetryPolicy{MaxAttempts: 1}, StartToClose: 20 * time.Second, HeartbeatTimeout: 8 * time.Second})
		w.eventually(func() error { // a frontend may have tasks that wait for it
			next := w.takeOne()
			if next.MaxAttempts != 1 || next.HeartbeatTimeoutMs != 8_000 || next.TimeoutMs > 20_000 {
				w.complete(next)
				return fmt.Errorf("%d attempts of %d ms, heartbeats each %d ms", next.MaxAttempts, next.TimeoutMs, next.HeartbeatTimeoutMs)
			}
			equal(t, "verdict", w.fail(next, &yardv1.Failure{Message: "no"}), "OK")
			want(t, w.ended(next.TaskId), "dead", "submitted started failed dead")
			return nil
		})
		equal(t, "verdict", w.fail(p, &yardv1.Failure{Message: "no"}), "OK") // it has run for long
		want(t, w.ended(runs), "dead", "submitted started failed dead")

		testkit.NoError(t, w.client.RunNow(w.soon(), own))
		for next := w.takeOne(); ; next = w.takeOne() {
			if next.TaskId == own {
				equal(t, "of its own", next.MaxAttempts, 7)
				equal(t, "of its type", next.HeartbeatTimeoutMs, 8_000)
				equal(t, "verdict", w.complete(next), "OK")
				return
			}
			w.complete(next)
		}
	})
}
