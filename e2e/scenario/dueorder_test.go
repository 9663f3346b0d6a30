package scenario_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// These are the acceptance scenarios of a scheduler whose tasks have a time and an ordering key. Times come from the log.

// dueAt is a task of a key that is due at an instant, Unix ms.
func dueAt(kind, key string, runAtMS int64) *yardv1.NewTask {
	return &yardv1.NewTask{Type: kind, OrderKey: key, RunAtMs: runAtMS}
}

// runsInTime takes the tasks in the order of their ids, completes each before it takes the next one, and checks that none began before it was due.
func (w *world) runsInTime(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		p := w.takeOne()
		equal(w.t, "the next task", p.TaskId, id)
		equal(w.t, "complete", w.complete(p), "OK")
		if task := w.ended(id); w.started(id) < task.DueAtMs {
			w.t.Errorf("%s was due at %d and began at %d", id, task.DueAtMs, w.started(id))
		}
	}
}

// TestWhatIsDueNowRunsAlone: one task now and three later, of mixed keys. The one runs alone, the three when they are due, one of them behind another of its key.
func TestWhatIsDueNowRunsAlone(t *testing.T) {
	testkit.Slow(t, "waits until tasks are due")
	everywhere(t, func(t *testing.T, w *world) {
		later := time.Now().Add(3 * time.Second).UnixMilli()
		now := w.submitOne(&yardv1.NewTask{Type: "x", OrderKey: "a"})
		w.runsInTime(now)
		w.nothing(list)
		ids := w.submit(dueAt("x", "b", later), dueAt("x", "a", later+100), dueAt("x", "a", later+200))
		w.nothing(list)
		w.runsInTime(ids...)
		w.nothing(list)
	})
}

// TestTasksAreInTheOrderOfTheirTimes: the one that is due last is submitted first, of one key and of different keys.
func TestTasksAreInTheOrderOfTheirTimes(t *testing.T) {
	testkit.Slow(t, "waits until tasks are due")
	for name, keys := range map[string][]string{"one key": {"a", "a", "a"}, "different keys": {"a", "b", "c"}} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w *world) {
				first := time.Now().Add(3 * time.Second).UnixMilli()
				ids := make([]string, len(keys))
				for i := len(keys) - 1; i >= 0; i-- {
					ids[i] = w.submitOne(dueAt("x", keys[i], first+int64(i)*300))
				}
				w.runsInTime(ids...)
			})
		})
	}
}

// TestAnOldTaskRunsAtOnce: one that was due 9 s ago is accepted and runs, also behind a newer one of its key; one that was due 30 s ago is refused.
func TestAnOldTaskRunsAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		ago := func(d time.Duration) int64 { return time.Now().Add(-d).UnixMilli() }
		newer := w.submitOne(dueAt("x", "a", ago(time.Second)))
		w.runsInTime(newer)
		older := w.submitOne(dueAt("x", "a", ago(5*time.Second)))
		w.runsInTime(older)
		_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{dueAt("x", "a", ago(30*time.Second))}})
		if f := fault.From(err); f == nil || f.Code != fault.InvalidTime || f.Path != "/tasks/0/run_at_ms" {
			t.Errorf("a task that was due 30 s ago: %v", err)
		}
		w.nothing(list)
	})
}

// TestAFailingTaskDelaysOnlyItsKey: its next attempt comes after the wait of its policy, and a task of another key comes in between.
func TestAFailingTaskDelaysOnlyItsKey(t *testing.T) {
	testkit.Slow(t, "waits for retries")
	everywhere(t, func(t *testing.T, w *world) {
		const wait = 4000
		failing := &yardv1.NewTask{Type: "x", OrderKey: "a", Retry: &yardv1.RetryPolicy{MaxAttempts: 2, InitialIntervalMs: wait}}
		ids := w.submit(failing, &yardv1.NewTask{Type: "x", OrderKey: "a"})
		p := w.takeOne()
		equal(t, "the first task", p.TaskId, ids[0])
		equal(t, "fail", w.fail(p, &yardv1.Failure{}), "OK")
		between := w.submitOne(dueAt("x", "b", time.Now().Add(time.Second).UnixMilli()))
		w.runsInTime(between, ids[0], ids[1])
		task, other := w.ended(ids[0]), w.started(between)
		var failed, again int64
		for _, e := range task.Events {
			switch kindOf(e) {
			case "failed":
				failed = e.AtMs
			case "started":
				again = e.AtMs
			}
		}
		if again < failed+wait*9/10 || other > again { // the wait is spread by a tenth
			t.Errorf("failed at %d, again at %d, the other one at %d", failed, again, other)
		}
	})
}

// TestOverdueTasksRunAtOnceAfterAStop: one of two tasks is due while nothing runs. It runs when the engine is started again, and the other one in its time.
func TestOverdueTasksRunAtOnceAfterAStop(t *testing.T) {
	testkit.Slow(t, "restarts a system of its own")
	eachKind(t, func(t *testing.T, kind stack.Tables) {
		cfg := stack.Config{Tables: kind, DataDir: t.TempDir()}
		w := enter(t, own(t, cfg))
		due := time.Now().Add(5 * time.Second)
		ids := w.submit(dueAt("x", "a", due.UnixMilli()), dueAt("x", "b", due.Add(15*time.Second).UnixMilli()))
		w.reach(ids[0], "waiting")
		testkit.NoError(t, closeStack(w.stack))
		select {
		case <-time.After(time.Until(due)):
		case <-t.Context().Done():
		}
		w = join(t, own(t, cfg), w.domain)
		w.runsInTime(ids...)
	})
}
