package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// update changes one task.
func (w *world) update(u *yardv1.TaskUpdate) *yardv1.Verdict {
	w.t.Helper()
	return w.outcome("tasks.update", &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{u}}).Verdicts[0]
}

// changed is update where it holds, and the task has the revision then.
func (w *world) changed(u *yardv1.TaskUpdate, revision int64) {
	w.t.Helper()
	v := w.update(u)
	equal(w.t, "verdict", fmt.Sprint(v.Code, v.Revision, v.Message), fmt.Sprint("OK", revision))
}

// TestUpdateReady: the worker gets what the task was changed to, and the history tells of it. A poll right behind the answer may find the other task before
// the trigger of the updated one arrives; the cores' tests show its new place.
func TestUpdateReady(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		first := w.submitOne(&yardv1.NewTask{Type: "x", Priority: 3})
		id := w.submitOne(&yardv1.NewTask{Type: "x", Priority: 5, Payload: jsonPayload(`1`), Headers: map[string]string{"a": "1"}})
		w.reach(first, "ready")
		w.reach(id, "ready")
		w.changed(&yardv1.TaskUpdate{
			TaskId: id, Priority: 1, Group: "acme", Payload: jsonPayload(`2`), Headers: map[string]string{"b": "2"}, Retry: &yardv1.RetryPolicy{MaxAttempts: 9},
			StartToCloseMs: 77_000, HeartbeatTimeoutMs: 9_000, StartWithinMs: 60_000,
		}, 2)
		task := w.get(id)
		equal(t, "revision", task.Revision, 2)
		equal(t, "revision", w.get(first).Revision, 1)
		p, other := w.takeOne(), w.takeOne()
		if p.TaskId != id {
			p, other = other, p
		}
		testkit.MustEqual(t, "task", p.TaskId, id)
		equal(t, "other task", other.TaskId, first)
		equal(t, "attempt", p.Attempt, 1)
		equal(t, "what it has", fmt.Sprint(p.Priority, " ", p.Group, " ", string(p.Payload.Data), " ", p.Headers, " ", p.MaxAttempts, p.HeartbeatTimeoutMs), "1 acme 2 map[b:2] 9 9000")
		if p.TimeoutMs <= 70_000 || p.TimeoutMs > 77_000 {
			t.Errorf("it has %d ms", p.TimeoutMs)
		}
		equal(t, "verdict", w.complete(p, other), "OK OK")
		task = w.ended(id)
		want(t, task, "completed", "submitted updated started completed")
		equal(t, "fields", task.Events[1].Message, "priority, group, headers, payload, start_within_ms, start_to_close_ms, heartbeat_timeout_ms, retry")
		w.nothing(list)
	})
}

// TestUpdateByRevision: of two who have read the same task one is refused, and hears what it missed; a request that is repeated is made once.
func TestUpdateByRevision(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 9_000})
		w.changed(&yardv1.TaskUpdate{TaskId: id, IfRevision: 1, Priority: 2}, 2)
		v := w.update(&yardv1.TaskUpdate{TaskId: id, IfRevision: 1, Priority: 4})
		equal(t, "verdict", fmt.Sprint(v.Code, v.Revision), "STALE2")
		req := &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{{TaskId: id, IfRevision: 2, Priority: 5}}, RequestId: ids.NewRequestID(time.Now()).String(), Tries: 1}
		for range 2 {
			v := w.outcome("tasks.update", req).Verdicts[0]
			equal(t, "verdict", fmt.Sprint(v.Code, v.Revision), "OK3")
		}
		_, err := w.client.Update(w.soon(), yard.Update{TaskID: id, IfRevision: 7, Priority: 1})
		refused(t, err, fault.Stale)
		equal(t, "revision", fault.From(err).Detail["revision"], "3")
		equal(t, "priority", w.get(id).Priority, 5)
		for path, u := range map[string]*yardv1.TaskUpdate{
			"/tasks/0": {}, "/tasks/0/priority": {Priority: 6}, "/tasks/0/run_now": {RunNow: true, DelayMs: 5}, "/tasks/0/group": {Group: "a b"},
			"/tasks/0/retry/max_attempts": {Retry: &yardv1.RetryPolicy{MaxAttempts: -1}}, "/tasks/0/if_revision": {IfRevision: -1, Priority: 1},
		} {
			u.TaskId = id
			_, err := call[yardv1.OutcomeResponse](w, "tasks.update", &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{u}})
			refusedAt(t, err, fault.InvalidArgument, path)
		}
		v = w.update(&yardv1.TaskUpdate{TaskId: ids.NewTaskID(time.Now(), 0, 42).String(), Priority: 1})
		equal(t, "verdict", v.Code, "NOT_FOUND")
	})
}

// TestRunNow: whatever a task waits for, and wherever.
func TestRunNow(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		far := w.submitOne(&yardv1.NewTask{Type: "far", DelayMs: 3_600_000})
		w.reach(far, "waiting")
		testkit.NoError(t, w.client.RunNow(w.soon(), far))
		equal(t, "verdict", w.complete(w.takeOne("far")), "OK")
		want(t, w.ended(far), "completed", "submitted parked updated fired started completed")

		for _, wait := range []int64{9_000, 3_600_000} {
			id := w.submitOne(&yardv1.NewTask{Type: "x", Retry: &yardv1.RetryPolicy{InitialIntervalMs: wait, MaxIntervalMs: wait}})
			equal(t, "verdict", w.fail(w.takeOne("x"), &yardv1.Failure{Message: "no"}), "OK")
			w.reach(id, "backoff")
			testkit.NoError(t, w.client.RunNow(w.soon(), id))
			p := w.takeOne("x")
			equal(t, "task", fmt.Sprint(p.TaskId, p.Attempt, p.Failures), fmt.Sprint(id, 2, 1))
			refused(t, w.client.RunNow(w.soon(), id), fault.FailedPrecondition)
			equal(t, "verdict", w.complete(p), "OK")
			refused(t, w.client.RunNow(w.soon(), id), fault.FailedPrecondition)
			past := eventsOf(w.ended(id))
			if !strings.HasSuffix(past, "started completed") || !strings.Contains(past, "updated") {
				t.Errorf("its history is %s", past)
			}
		}
	})
}

// TestUpdateRefusedStaysRefused: what was refused while an attempt ran is refused where the same request comes again, and the task waits by then.
func TestUpdateRefusedStaysRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		p := w.takeOne("x")
		req := &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{{TaskId: id, Payload: jsonPayload(`2`)}}, RequestId: ids.NewRequestID(time.Now()).String()}
		equal(t, "while it runs", w.outcome("tasks.update", req).Verdicts[0].Code, "FAILED_PRECONDITION")
		equal(t, "verdict", w.fail(p, &yardv1.Failure{DelayMs: 3_600_000}), "OK")
		w.reach(id, "backoff")
		equal(t, "once more", w.outcome("tasks.update", req).Verdicts[0].Code, "FAILED_PRECONDITION")
		w.changed(&yardv1.TaskUpdate{TaskId: id, RunNow: true}, 2)
		equal(t, "input", string(w.takeOne("x").Payload.GetData()), "")
	})
}

// TestUpdateMovesTheTime: from now into the future and back, near and far, and a task that is not read yet.
func TestUpdateMovesTheTime(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		w.reach(id, "ready")
		w.changed(&yardv1.TaskUpdate{TaskId: id, DelayMs: 3_600_000}, 2)
		w.nothing(list)
		w.reach(id, "waiting")
		w.changed(&yardv1.TaskUpdate{TaskId: id, DelayMs: 7_200_000, Payload: jsonPayload(`"later"`)}, 3)
		w.eventually(func() error {
			if task := w.get(id); stateOf(task) != "waiting" || task.DueAtMs-task.CreatedAtMs < 7_000_000 || task.Revision != 3 {
				return fmt.Errorf("it is %v", task)
			}
			return nil
		})
		w.changed(&yardv1.TaskUpdate{TaskId: id, DelayMs: 300}, 4)
		p := w.takeOne()
		equal(t, "payload", string(p.Payload.Data), `"later"`)
		equal(t, "verdict", w.complete(p), "OK")
		want(t, w.ended(id), "completed", "submitted updated parked updated updated fired started completed")

		for i := range 10 { // at once: before it is read, or parked
			id := w.submitOne(&yardv1.NewTask{Type: "y", DelayMs: int64(i%2) * 3_600_000})
			w.changed(&yardv1.TaskUpdate{TaskId: id, RunNow: true, Payload: jsonPayload(`"now"`)}, 2)
			p := w.takeOne("y")
			equal(t, "task", p.TaskId+string(p.Payload.Data), id+`"now"`)
			equal(t, "verdict", w.complete(p), "OK")
		}
		gone := w.submitOne(&yardv1.NewTask{Type: "z", DelayMs: 3_600_000})
		w.reach(gone, "waiting")
		w.changed(&yardv1.TaskUpdate{TaskId: gone, Priority: 1}, 2)
		equal(t, "cancel", w.cancel(gone).Code, "OK")
		equal(t, "state", stateOf(w.ended(gone)), "cancelled")
		equal(t, "verdict", w.update(&yardv1.TaskUpdate{TaskId: gone, Priority: 2}).Code, "FAILED_PRECONDITION")
	})
}

// TestUpdateExtendsTheDeadline: of an attempt that runs, whose handler's context goes on; and what does not change while it runs is refused.
func TestUpdateExtendsTheDeadline(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		started, done := make(chan struct{}), make(chan error, 1)
		w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "long", func(ctx context.Context, _ struct{}) (struct{}, error) {
				close(started)
				for {
					if by, _ := ctx.Deadline(); time.Until(by) > 10*time.Minute {
						done <- nil
						return struct{}{}, nil
					}
					select {
					case <-ctx.Done():
						done <- ctx.Err()
						return struct{}{}, ctx.Err()
					case <-time.After(20 * time.Millisecond):
					}
				}
			})
		})
		id, err := w.client.Submit(w.soon(), yard.Task{Type: "long", Tasklist: list, StartToClose: 5 * time.Minute})
		testkit.NoError(t, err)
		<-started
		equal(t, "verdict", w.update(&yardv1.TaskUpdate{TaskId: id, Priority: 1}).Code, "FAILED_PRECONDITION")
		revision, err := w.client.Update(w.soon(), yard.Update{TaskID: id, StartToClose: time.Hour})
		if err != nil || revision != 2 {
			t.Fatal(revision, err)
		}
		testkit.Check(t, <-done)
		want(t, w.ended(id), "completed", "submitted started updated completed")

		id = w.submitOne(&yardv1.NewTask{Type: "short", Retry: &yardv1.RetryPolicy{MaxAttempts: 5}})
		p := w.takeOne("short")
		w.changed(&yardv1.TaskUpdate{TaskId: id, StartToCloseMs: 100, Retry: &yardv1.RetryPolicy{MaxAttempts: 1}}, 2)
		task := w.ended(id)
		want(t, task, "dead", "submitted started updated timed_out dead")
		if v := w.beat(p); v.Code != string(fault.Stale) || errors.Is(err, yard.ErrLostAttempt) {
			t.Errorf("a beat gets %v", v)
		}
	})
}
