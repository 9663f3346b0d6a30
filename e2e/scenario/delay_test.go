package scenario_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI10DelayedTasksFireOnceAndNotEarly compares instants that the log itself
// wrote down: when the task was due, and when it was started.
func TestI10DelayedTasksFireOnceAndNotEarly(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		var tasks []*yardv1.NewTask
		for i := range 50 {
			task := &yardv1.NewTask{Type: "x", Payload: jsonPayload(fmt.Sprint(i)), Priority: int32(1 + i%5)}
			if i%2 == 0 {
				task.DelayMs = int64(300 + 17*i)
			} else {
				task.RunAtMs = time.Now().UnixMilli() + int64(300+17*i)
			}
			tasks = append(tasks, task)
		}
		ids := w.submit(tasks...)
		want(t, w.reach(ids[len(ids)-1], "waiting"), "waiting", "submitted parked")

		seen := map[string]bool{}
		for _, p := range w.take(len(ids)) {
			if seen[p.TaskId] {
				t.Fatalf("%s came twice", p.TaskId)
			}
			seen[p.TaskId] = true
			equal(t, "verdict", w.complete(p), "OK")
		}
		for i, id := range ids {
			task := w.ended(id)
			want(t, task, "completed", "submitted parked fired started completed")
			if due := tasks[i].RunAtMs; due > 0 {
				equal(t, "due", task.DueAtMs, due)
			} else {
				// The delay counts from when the request came in, which its client dated a moment before.
				if after := task.DueAtMs - task.CreatedAtMs; after < tasks[i].DelayMs || after > tasks[i].DelayMs+within.Milliseconds() {
					t.Errorf("%s is due %d ms after it was created, want %d", id, after, tasks[i].DelayMs)
				}
			}
			if started := past(task)[3].AtMs; started < task.DueAtMs {
				t.Errorf("%s was started %d ms early", id, task.DueAtMs-started)
			}
		}
		w.nothing(list)
	})
}
