package scenario_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// TestExpiresUnstarted: a task that no worker takes in time ends, is kept, and is no dead letter.
func TestExpiresUnstarted(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", StartWithinMs: 300, Payload: jsonPayload(`"kept"`)})
		task := w.ended(id)
		want(t, task, "expired", "submitted expired")
		last := task.Events[1]
		equal(t, "reason", last.Message+", "+last.ErrorType, "it did not start in time, start_within")
		if task.FinishedAtMs < task.StartByMs || task.StartByMs < task.CreatedAtMs+300 || task.FinishByMs != 0 {
			t.Errorf("it expired at %d, it had time until %d", task.FinishedAtMs, task.StartByMs)
		}
		equal(t, "payload", string(task.Payload.Data), `"kept"`)
		equal(t, "cancel", w.cancel(id).Code, string(fault.FailedPrecondition))
		w.nothing(list)
		counts := must[yardv1.DescribeTasklistResponse](w, "tasklists.describe", &yardv1.DescribeTasklistRequest{Tasklist: list})
		if counts.Expired < 1 || counts.Dead > 0 || counts.Ready > 0 {
			t.Errorf("%v", counts)
		}
		listed := must[yardv1.ListResponse](w, "tasks.list", &yardv1.ListRequest{States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_EXPIRED}}).Tasks
		if len(listed) != 1 || listed[0].TaskId != id {
			t.Errorf("listed as expired: %v", listed)
		}
	})
}

// TestExpiresFromWhenItIsDue: a delay does not count.
func TestExpiresFromWhenItIsDue(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 1000, StartWithinMs: 200, FinishWithinMs: 60_000})
		waiting := w.reach(id, "waiting")
		equal(t, "time to start, from when it is due", waiting.StartByMs-waiting.DueAtMs, 200)
		equal(t, "time to finish, from when it is due", waiting.FinishByMs-waiting.DueAtMs, 60_000)
		want(t, w.ended(id), "expired", "submitted parked fired expired")
	})
}

// TestExpiresWhileItRuns: the attempt's time is cut to the task's, and its end is the task's.
func TestExpiresWhileItRuns(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", StartWithinMs: 20_000, FinishWithinMs: 20_000})
		p := w.takeOne()
		if p.TimeoutMs <= 0 || p.TimeoutMs > 20_000 {
			t.Errorf("the attempt has %d ms", p.TimeoutMs)
		}
		equal(t, "verdict", w.fail(p, &yardv1.Failure{Message: "busy", DelayMs: 20_000}), "OK")
		task := w.ended(id)
		want(t, task, "expired", "submitted started failed expired")
		equal(t, "the last failure", task.ErrorMessage, "busy")
		equal(t, "reason", task.Events[len(task.Events)-1].ErrorType, "finish_within")

		short := w.submitOne(&yardv1.NewTask{Type: "x", FinishWithinMs: 1000, Retry: &yardv1.RetryPolicy{MaxAttempts: 1}})
		w.takeOne()
		want(t, w.ended(short), "expired", "submitted started timed_out expired")
	})
}

// TestExpiryOfAType: its tasks have it unless they bring their own.
func TestExpiryOfAType(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "brief", StartWithin: 200 * time.Millisecond, FinishWithin: time.Hour})
		own := w.submitOne(&yardv1.NewTask{Type: "brief", StartWithinMs: 1_800_000})
		of := w.submitOne(&yardv1.NewTask{Type: "brief"})
		want(t, w.ended(of), "expired", "submitted expired")
		p := w.takeOne()
		equal(t, "what is left", p.TaskId, own)
		equal(t, "verdict", w.complete(p), "OK")
		want(t, w.ended(own), "completed", "submitted started completed")
	})
}
