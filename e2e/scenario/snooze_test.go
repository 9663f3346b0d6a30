package scenario_test

import (
	"context"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestASnoozedTaskComesBack: a handler puts its task off, for longer than there are failures left, and completes it; none is counted, and its history tells
// of each time. What a request says wrong is refused.
func TestASnoozedTaskComesBack(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "export", Retry: &yardv1.RetryPolicy{MaxAttempts: 1}})
		w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "export", func(ctx context.Context, _ any) (string, error) {
				if yard.Info(ctx).Number < 4 {
					return "", yard.Snooze(20*time.Millisecond, "it is not ready")
				}
				return "done", nil
			})
		})
		task := w.ended(id)
		want(t, task, "completed", "submitted started snoozed started snoozed started snoozed started completed")
		equal(t, "failures", task.Failures, 0)
		for _, e := range past(task) {
			if e.Kind == yardv1.TaskEventKind_TASK_EVENT_KIND_SNOOZED && (e.DueAtMs < e.AtMs+20 || e.Message != "it is not ready" || e.ErrorType != "") {
				t.Errorf("its history says %v", e)
			}
		}
		w.submitOne(&yardv1.NewTask{Type: "other"})
		p := w.takeOne("other")
		for path, f := range map[string]*yardv1.Failure{
			"/tasks/0/delay_ms": {Snooze: true}, "/tasks/0/snooze": {Snooze: true, DelayMs: 1, ErrorType: "x"},
		} {
			f.TaskId, f.Token = p.TaskId, p.Token
			_, err := w.client.Wire().Fail(w.soon(), []*yardv1.Failure{f})
			refusedAt(t, err, fault.InvalidArgument, path)
		}
		// For longer than history keeps it in memory: it waits in the timer store, and comes back.
		equal(t, "verdict", w.fail(p, &yardv1.Failure{Snooze: true, DelayMs: 11_000}), "OK")
		again := w.takeOne("other")
		equal(t, "task", again.TaskId, p.TaskId)
		equal(t, "failures", again.Failures, 0)
		w.complete(again)
		want(t, w.ended(p.TaskId), "completed", "submitted started snoozed parked fired started completed")
	})
}
