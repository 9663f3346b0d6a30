package scenario_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/contracts/yard/timers"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestWaitingTasksAreListedByDueTime: tasks of all partitions, in memory and on disk, come in the order of due time, in pages of any size, and the counts by time,
// tasklist and type are theirs. Another domain's tasks and the next runs of a schedule are not among them.
func TestWaitingTasksAreListedByDueTime(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		other := enter(t, w.stack)
		delays := []time.Duration{20 * time.Hour, 3 * time.Minute, 5 * time.Hour, 7 * time.Minute, 40 * time.Minute, 72 * time.Hour, 41 * time.Minute}
		var tasks []*yardv1.NewTask
		for i, delay := range delays {
			for n := range 6 { // keys spread them over the partitions
				tasks = append(tasks, &yardv1.NewTask{
					Type: fmt.Sprint("type", i%2), DelayMs: delay.Milliseconds() + int64(n), UniqueKey: fmt.Sprint("key ", i, n),
				})
			}
		}
		w.submit(tasks...)
		other.submit(&yardv1.NewTask{Type: "type0", DelayMs: 60_000})
		_, err := schedules.Of(w.client).Put(w.soon(), schedules.Schedule{Name: "soon", Every: time.Hour, Task: yard.Task{Type: "type0", Tasklist: list}})
		testkit.NoError(t, err)
		w.described(list, func(d yard.TasklistInfo) bool { return d.Waiting == int64(len(tasks)) })

		for _, limit := range []int{4, 7, 1000} {
			var due []*yard.TaskInfo
			for task, err := range w.client.Tasks(w.soon(), yard.Filter{DueWithin: 30 * time.Hour, Limit: limit}) {
				testkit.NoError(t, err)
				due = append(due, task)
			}
			byMinute := func(a, b *yard.TaskInfo) int { return cmp.Compare(a.DueAt.Unix()/60, b.DueAt.Unix()/60) }
			if len(due) != 36 || !slices.IsSortedFunc(due, byMinute) {
				t.Errorf("pages of %d: %d of 36 tasks, or out of order", limit, len(due))
			}
			if limit == 1000 && !slices.IsSortedFunc(due, func(a, b *yard.TaskInfo) int { return a.DueAt.Compare(b.DueAt) }) {
				t.Error("one page is not sorted by due time")
			}
		}

		ahead, err := timers.Count(w.soon(), w.client, timers.Query{Within: 30 * time.Hour, Span: time.Hour})
		testkit.NoError(t, err)
		equal(t, "in all", [2]int64{ahead.Tasks, ahead.Later}, [2]int64{36, 6})
		equal(t, "kinds", fmt.Sprint(ahead.Kinds), fmt.Sprint([]timers.Kind{{Tasklist: list, Type: "type0", Tasks: 24}, {Tasklist: list, Type: "type1", Tasks: 12}}))
		sum := int64(0)
		for _, s := range ahead.Spans {
			sum += s.Tasks
		}
		equal(t, "in spans", sum, 36)
		ahead, err = timers.Count(w.soon(), w.client, timers.Query{Within: time.Hour, Span: time.Minute, Type: "type1"})
		testkit.NoError(t, err)
		equal(t, "of a type within the hour", ahead.Tasks, 12)
	})
}
