package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI7TheBacklogStaysOnDisk submits ten windows' worth without a worker:
// history holds its windows and not more, knows the rest all the same, lets more
// urgent tasks by, and drains everything, across a restart, each task once.
func TestI7TheBacklogStaysOnDisk(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "floods the system for half a minute and more")
	const tasks, batch, window = 20_000, 100, 500
	services := stack.DefaultServices()
	services.History.Partition.WindowTasks = window
	cfg := stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir(), Services: &services}
	w := enter(t, own(t, cfg))

	var ids []string
	request := many(batch, &yardv1.NewTask{Type: "x", Payload: jsonPayload(`"` + strings.Repeat("p", 250) + `"`)})
	for range tasks / batch {
		ids = append(ids, w.submit(request...)...)
	}
	// A message is read whole, so a window is passed by less than one.
	most := int64(w.stack.Partitioning.History * (window + batch))
	loaded := func() int64 { return meters(t, w.stack)[signals.TasksLoaded.Prometheus()] }
	w.meter(signals.TasksLoaded, window)
	w.meter(signals.OldestReady, 1) // no one works
	if n := loaded(); n > most {
		t.Fatalf("%d tasks are in memory, at most %d may be", n, most)
	}

	// What is not read is known, can be cancelled, and holds no one up.
	last := ids[tasks-1]
	want(t, w.get(last), "queued", "")
	equal(t, "cancel", w.cancel(last).Code, "OK")
	w.eventually(func() error {
		resp := must[yardv1.DescribeTasklistResponse](w, "tasklists.describe", &yardv1.DescribeTasklistRequest{Tasklist: list})
		if least := (tasks - most) / batch; resp.UnreadBatches < least {
			return fmt.Errorf("%d unread batches, want %d", resp.UnreadBatches, least)
		}
		return nil
	})
	urgent := w.submitOne(&yardv1.NewTask{Type: "urgent", Priority: 1})
	equal(t, "the urgent one", w.takeOne("urgent").TaskId, urgent)
	if n := loaded(); n > most+1 {
		t.Errorf("%d tasks are in memory, at most %d may be", n, most+1)
	}

	seen := map[string]bool{}
	drain(w, seen, tasks/2)
	w = w.restarted(cfg)
	drain(w, seen, tasks-1)
	for _, id := range ids[:tasks-1] {
		if !seen[id] {
			t.Fatalf("%s never came", id)
		}
	}
	equal(t, "the last one", seen[last], false)
	w.eventually(func() error {
		if task := w.get(last); stateOf(task) != "cancelled" {
			return fmt.Errorf("the last one is %s", stateOf(task))
		}
		return nil
	})
	for _, id := range ids[:100] {
		equal(t, "state", stateOf(w.get(id)), "completed")
	}
}

// drain completes what comes until so many tasks have been seen, each once.
func drain(w *world, seen map[string]bool, until int) {
	w.t.Helper()
	for len(seen) < until {
		polled := w.some(1000)
		for _, p := range polled {
			if seen[p.TaskId] {
				w.t.Fatalf("%s came twice", p.TaskId)
			}
			seen[p.TaskId] = true
		}
		if got := w.complete(polled...); strings.Trim(got, "OK ") != "" {
			w.t.Fatalf("verdicts %s", got)
		}
	}
}
