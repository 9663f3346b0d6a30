package scenario_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestCancelWhatDoesNotRun: what is ready, waits for its time, or for its next attempt.
func TestCancelWhatDoesNotRun(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for state, task := range map[string]*yardv1.NewTask{
			"ready": {}, "waiting": {DelayMs: 3_600_000}, "backoff": {Retry: &yardv1.RetryPolicy{InitialIntervalMs: 9_000}},
		} {
			task.Type = state
			id := w.submitOne(task)
			if state == "backoff" {
				equal(t, "verdict", w.fail(w.takeOne(state), &yardv1.Failure{Message: "no"}), "OK")
			}
			before := eventsOf(w.reach(id, state))
			v := w.cancel(id)
			equal(t, "verdict", v.Code, "OK")
			equal(t, "a worker was notified", v.CancelRequested, false)
			task := w.ended(id)
			want(t, task, "cancelled", before+" cancelled")
			equal(t, "reason", task.Events[len(task.Events)-1].Message, "no longer wanted")
		}
		w.nothing(list)
	})
}

// TestCancelAtOnce does not wait for the log's reader: the cancel may be read
// before the task, and holds all the same.
func TestCancelAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var cancelled []string
		for i := range 20 {
			id := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: int64(i%2) * 200})
			equal(t, "verdict", w.cancel(id).Code, "OK")
			cancelled = append(cancelled, id)
		}
		for _, id := range cancelled {
			equal(t, "state", stateOf(w.ended(id)), "cancelled")
		}
		w.nothing(list)
	})
}

func TestCancelRunning(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		p := w.takeOne()
		equal(t, "before", w.beat(p).CancelRequested, false)
		v := w.cancel(id)
		equal(t, "verdict", v.Code, "OK")
		equal(t, "a worker is notified", v.CancelRequested, true)
		beat := w.beat(p)
		equal(t, "beat", beat.Code, "OK")
		equal(t, "asked to stop", beat.CancelRequested, true)
		task := w.get(id)
		want(t, task, "running", "submitted started cancel_requested")
		equal(t, "cancel requested", task.CancelRequested, true)
		equal(t, "repeat", w.cancel(id).Code, "OK")
		equal(t, "verdict", w.fail(p, &yardv1.Failure{Message: "stopped"}), "OK")
		want(t, w.ended(id), "cancelled", "submitted started cancel_requested failed cancelled")
		w.nothing(list)
	})
}

// Workers of the domain are informed of a cancel at once, if its task runs.
func TestCancelIsTold(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		told, err := w.nc.SubscribeSync(topology.CancelHint(w.domain))
		testkit.NoError(t, err)
		idle := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 60_000})
		equal(t, "verdict", w.cancel(idle).Code, "OK")
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		p := w.takeOne()
		equal(t, "verdict", w.cancel(id).Code, "OK")
		msg, err := told.NextMsg(30 * time.Second)
		testkit.NoError(t, err)
		equal(t, "hint", string(msg.Data), `{"task_ids":["`+p.TaskId+`"]}`)
	})
}

// TestCancelledButCompleted: work that was done before its worker heard of the
// cancel is done.
func TestCancelledButCompleted(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		p := w.takeOne()
		equal(t, "verdict", w.cancel(id).Code, "OK")
		equal(t, "verdict", w.complete(p), "OK")
		want(t, w.ended(id), "completed", "submitted started cancel_requested completed")
	})
}

func TestCancelFinishedAndUnknown(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		equal(t, "verdict", w.complete(w.takeOne()), "OK")
		equal(t, "finished", w.cancel(id).Code, "FAILED_PRECONDITION")
		want(t, w.ended(id), "completed", "submitted started completed")

		known, err := ids.ParseTaskID(id)
		testkit.NoError(t, err)
		never := ids.NewTaskID(known.Time(), known.Partition(), 42)
		equal(t, "unknown", w.cancel(never.String()).Code, "NOT_FOUND")
		elsewhere := ids.NewTaskID(known.Time(), 999, 42)
		equal(t, "unknown partition", w.cancel(elsewhere.String()).Code, "NOT_FOUND")

		withdrawn := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 3_600_000})
		w.reach(withdrawn, "waiting")
		equal(t, "first", w.cancel(withdrawn).Code, "OK")
		w.ended(withdrawn)
		if got := w.cancel(withdrawn).Code; got != "OK" && got != "FAILED_PRECONDITION" {
			t.Errorf("second cancel: %s", got)
		}
	})
}

// TestCancelReachesTheHandler: the SDK ends the handler's context.
func TestCancelReachesTheHandler(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		started, cause := make(chan struct{}), make(chan error, 1)
		w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "long", func(ctx context.Context, _ struct{}) (struct{}, error) {
				close(started)
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return struct{}{}, ctx.Err()
			})
		})
		id, err := w.client.Submit(w.soon(), yard.Task{Type: "long", Tasklist: list, HeartbeatTimeout: 6 * time.Second})
		testkit.NoError(t, err)
		<-started
		testkit.NoError(t, w.client.Cancel(w.soon(), id))
		if err := <-cause; !errors.Is(err, yard.ErrCancelled) {
			t.Errorf("the handler ended by %v", err)
		}
		equal(t, "state", stateOf(w.ended(id)), "cancelled")
	})
}

// TestDomainsAreFenced: knowing an id and a token of another domain is no use.
func TestDomainsAreFenced(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		other := enter(t, w.stack)
		waiting := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 3_600_000})
		w.reach(waiting, "waiting")
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		other.nothing(list)
		p := w.takeOne()

		for _, target := range []string{id, waiting} {
			_, err := call[yardv1.GetResponse](other, "tasks.get", &yardv1.GetRequest{TaskId: target})
			refused(t, err, "NOT_FOUND")
			equal(t, "cancel", other.cancel(target).Code, "NOT_FOUND")
		}
		equal(t, "complete", other.complete(p), "NOT_FOUND")
		equal(t, "fail", other.fail(p, &yardv1.Failure{Message: "no"}), "NOT_FOUND")
		equal(t, "heartbeat", other.beat(p).Code, "NOT_FOUND")
		equal(t, "listed", len(must[yardv1.ListResponse](other, "tasks.list", &yardv1.ListRequest{}).Tasks), 0)

		want(t, w.get(id), "running", "submitted started")
		want(t, w.get(waiting), "waiting", "submitted parked")
		equal(t, "verdict", w.complete(p), "OK")
		_, err := call[yardv1.GetResponse](other, "tasks.get", &yardv1.GetRequest{TaskId: id})
		refused(t, err, "NOT_FOUND")
	})
}
