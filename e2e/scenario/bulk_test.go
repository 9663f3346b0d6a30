package scenario_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/bulk"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// found waits until a preview finds so many tasks: the clock of their ids may be a moment ahead.
func (w *world) found(o bulk.Options, tasks int64) {
	w.t.Helper()
	o.Preview = true
	w.eventually(func() error {
		if d, err := bulk.Cancel(w.soon(), w.client, "", o); err != nil || d.Found != tasks || d.Changed != 0 {
			return fmt.Errorf("a preview finds %d, changes %d: %w", d.Found, d.Changed, err)
		}
		return nil
	})
}

// TestTasksThatMatchAreCancelledAndChanged: by tasklist, type, group, header and state; a preview changes nothing, and a repeat does no harm.
func TestTasksThatMatchAreCancelledAndChanged(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		runs := w.submitOne(&yardv1.NewTask{Type: "x", Group: "acme"})
		running := w.takeOne("x")
		spring := map[string]string{"campaign": "spring"}
		ids := w.submit(
			&yardv1.NewTask{Type: "x", Group: "acme", Headers: spring}, &yardv1.NewTask{Type: "x", Headers: spring, DelayMs: 3_600_000},
			&yardv1.NewTask{Type: "y", Group: "acme"}, &yardv1.NewTask{Type: "x", Tasklist: "other", Headers: spring},
		)
		w.reach(ids[0], "ready")
		w.reach(ids[1], "waiting")
		w.found(bulk.Options{Filter: yard.Filter{Headers: spring}}, 3)
		w.found(bulk.Options{Filter: yard.Filter{Headers: spring, Tasklist: list}}, 2)
		w.found(bulk.Options{Filter: yard.Filter{Group: "acme"}}, 2)
		w.found(bulk.Options{Filter: yard.Filter{Group: "acme", States: []yard.State{yard.StateReady, yard.StateRunning}}}, 3)
		w.found(bulk.Options{Filter: yard.Filter{Type: "y"}}, 1)
		w.found(bulk.Options{OlderThan: time.Hour}, 0)

		urgent, all := yard.Update{Priority: 1}, bulk.Options{Filter: yard.Filter{Headers: spring, Tasklist: list}, Rate: 1000}
		for range 2 {
			d, err := bulk.Update(w.soon(), w.client, urgent, all)
			testkit.NoError(t, err)
			equal(t, "changed", fmt.Sprint(d.Found, d.Changed, d.Refused, d.Undecided, len(d.Sample)), "2 2 0 0 2")
		}
		equal(t, "priorities", fmt.Sprint(w.get(ids[0]).Priority, w.get(ids[1]).Priority, w.get(ids[3]).Priority), "1 1 3")
		d, err := bulk.Update(w.soon(), w.client, urgent, bulk.Options{Filter: yard.Filter{States: []yard.State{yard.StateRunning}}})
		testkit.NoError(t, err)
		equal(t, "of one that runs", fmt.Sprint(d.Found, d.Changed, d.Refused), "1 0 1")

		if d, err = bulk.Cancel(w.soon(), w.client, "not wanted", all); err != nil || d.Changed != 2 {
			t.Fatalf("%+v %v", d, err)
		}
		cancelled := w.ended(ids[1])
		equal(t, "the reason", cancelled.Events[len(cancelled.Events)-1].Message, "not wanted")
		want(t, w.get(runs), "running", "submitted started")
		equal(t, "verdict", w.complete(running), "OK")
	})
}

// TestATaskIsMoved: a worker of the other tasklist gets it, wherever it waited. One that runs stays, and so does one that is to go where nothing may.
func TestATaskIsMoved(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		ids := append(w.submit(&yardv1.NewTask{Type: "x"}, &yardv1.NewTask{Type: "x", DelayMs: 60_000}), w.submitOne(&yardv1.NewTask{Type: "x", OrderKey: "k"}))
		for _, id := range ids {
			w.changed(&yardv1.TaskUpdate{TaskId: id, Tasklist: "spare"}, 2)
			equal(t, "tasklist", w.get(id).Tasklist, "spare")
		}
		testkit.NoError(t, w.client.RunNow(w.soon(), ids[1]))
		w.nothing(list)
		for range ids {
			tasks, err := w.poll(&yardv1.PollRequest{Tasklist: "spare", MaxTasks: 1, WaitMs: 20_000})
			if err != nil || len(tasks) != 1 || tasks[0].Tasklist != "spare" {
				t.Fatalf("%v %v", tasks, err)
			}
			equal(t, "one that runs", w.update(&yardv1.TaskUpdate{TaskId: tasks[0].TaskId, Tasklist: list}).Code, string(fault.FailedPrecondition))
			equal(t, "verdict", w.complete(tasks[0]), "OK")
		}
		equal(t, "where it ended", w.ended(ids[0]).Tasklist, "spare")
		testkit.NoError(t, testkit.Err(w.client.Drain(w.soon(), yard.OfTasklist("spare"), yard.PauseOptions{})))
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		w.eventually(func() error {
			_, err := w.client.Update(w.soon(), yard.Update{TaskID: id, Tasklist: "spare"})
			if fault.From(err).Code != fault.FailedPrecondition {
				return fmt.Errorf("a drained tasklist: %w", err)
			}
			return nil
		})
	})
}

// TestABacklogIsMovedWhereverItWaits: in memory, in the timer store, and on disk, where far more tasks lie than memory holds; none is lost.
func TestABacklogIsMovedWhereverItWaits(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	const tasks, batch, window, delayed = 600, 100, 100, 20
	services := stack.DefaultServices()
	services.History.Partition.WindowTasks = window
	w := enter(t, own(t, stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir(), Services: &services}))
	for range tasks / batch {
		all := make([]*yardv1.NewTask, batch)
		for i := range all {
			all[i] = &yardv1.NewTask{Type: "x"}
		}
		w.submit(all...)
	}
	for range delayed {
		w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 3_600_000})
	}
	var queued int
	w.eventually(func() error {
		queued = 0
		for _, err := range w.client.Tasks(w.soon(), yard.Filter{States: []yard.State{yard.StateQueued}, Limit: 70}) {
			testkit.NoError(t, err)
			queued++
		}
		if queued < batch || queued > tasks-window/2 {
			return fmt.Errorf("%d tasks are on disk", queued)
		}
		return nil
	})
	done := make(chan error, 1)
	go func() { // the tasks on disk come in as others leave
		for left := tasks; left > 0; {
			polled, err := w.client.Wire().Poll(w.soon(), &yardv1.PollRequest{Tasklist: "spare", MaxTasks: 100, WaitMs: 1000})
			if err != nil && w.t.Context().Err() != nil {
				done <- err
				return
			}
			var ended []*yardv1.Completion
			for _, p := range polled {
				ended = append(ended, &yardv1.Completion{TaskId: p.TaskId, Token: p.Token})
			}
			if len(ended) > 0 {
				if _, err := w.client.Wire().Complete(w.soon(), ended); err != nil {
					done <- err
					return
				}
				left -= len(ended)
			}
		}
		done <- nil
	}()
	d, err := bulk.Update(w.soon(), w.client, yard.Update{Tasklist: "spare"}, bulk.Options{Filter: yard.Filter{Tasklist: list}, Rate: 2000})
	if err != nil || d.Found != tasks+delayed || d.Changed != tasks+delayed {
		t.Fatalf("%+v: %v", d, err)
	}
	testkit.NoError(t, <-done)
	w.found(bulk.Options{Filter: yard.Filter{Tasklist: list}}, 0)
	w.found(bulk.Options{Filter: yard.Filter{Tasklist: "spare"}}, delayed)
}
