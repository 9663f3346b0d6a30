package scenario_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAPurgeCancelsWhatDoesNotRun: a preview changes nothing; a filter and other tasklists are kept; what runs goes on unless asked, and
// each cancelled task names who did it and why.
func TestAPurgeCancelsWhatDoesNotRun(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		purge := func(o yard.PurgeOptions) yard.Purged {
			p, err := w.client.Purge(w.soon(), yard.OfTasklist(list), o)
			testkit.NoError(t, err)
			return p
		}
		runs := w.submitOne(&yardv1.NewTask{Type: "x"})
		running := w.takeOne("x")
		other := w.submitOne(&yardv1.NewTask{Type: "x", Tasklist: "other"})
		ids := w.submit(&yardv1.NewTask{Type: "x"}, &yardv1.NewTask{Type: "x", DelayMs: 3_600_000}, &yardv1.NewTask{Type: "y"})
		w.reach(other, "ready")
		w.reach(ids[0], "ready")
		w.reach(ids[1], "waiting")
		w.reach(ids[2], "ready")

		// A purge is of what is older than it is by the server's clock, which may be a moment behind that of the ids.
		for running, found := range map[bool]int64{false: 3, true: 4} {
			w.eventually(func() error {
				if p := purge(yard.PurgeOptions{Preview: true, Running: running}); p.Found != found || p.Cancelled != 0 {
					return fmt.Errorf("preview, running %t: %+v", running, p)
				}
				return nil
			})
		}
		if p := purge(yard.PurgeOptions{Preview: true, OlderThan: time.Hour}); p.Found != 0 {
			t.Errorf("preview of old ones: %+v", p)
		}
		for _, id := range ids {
			if state := stateOf(w.get(id)); state != "ready" && state != "waiting" {
				t.Fatalf("a preview left %s %s", id, state)
			}
		}
		if p := purge(yard.PurgeOptions{Type: "y", Reason: "sent twice", By: "ann"}); p.Found != 1 || p.Cancelled != 1 {
			t.Errorf("of a type: %+v", p)
		}
		y := w.ended(ids[2])
		if last := y.Events[len(y.Events)-1]; stateOf(y) != "cancelled" || last.Message != "purged by ann: sent twice" {
			t.Errorf("%s %v", stateOf(y), last)
		}
		if p := purge(yard.PurgeOptions{Rate: 1000}); p.Found != 2 || p.Cancelled != 2 || p.Cursor != "" {
			t.Errorf("%+v", p)
		}
		want(t, w.ended(ids[0]), "cancelled", "submitted cancelled")
		equal(t, "the delayed one", stateOf(w.ended(ids[1])), "cancelled")
		want(t, w.get(runs), "running", "submitted started")
		if p := purge(yard.PurgeOptions{Running: true}); p.Found != 1 || p.CancelRequested != 1 {
			t.Errorf("with the running one: %+v", p)
		}
		equal(t, "asked to stop", w.beat(running).CancelRequested, true)
		equal(t, "the running one", w.complete(running), "OK")
		want(t, w.get(other), "ready", "submitted")
		p, err := w.client.Purge(w.soon(), yard.OfType("x"), yard.PurgeOptions{Tasklist: "other"})
		if err != nil || p.Cancelled != 1 {
			t.Errorf("%+v %v", p, err)
		}
		w.nothing("other")
	})
}

// TestI7_APurgeReachesTheBacklogOnDisk: far more tasks than memory holds are purged, step by step, and those that came after it began are not.
func TestI7_APurgeReachesTheBacklogOnDisk(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "floods the system for half a minute and more")
	const tasks, batch, window = 3000, 100, 200
	services := stack.DefaultServices()
	services.History.Partition.WindowTasks = window
	w := enter(t, own(t, stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir(), Services: &services}))
	request := many(batch, &yardv1.NewTask{Type: "x", Payload: jsonPayload(`"` + strings.Repeat("p", 250) + `"`)})
	var ids []string
	for range tasks / batch {
		ids = append(ids, w.submit(request...)...)
	}
	w.described(list, func(d yard.TasklistInfo) bool { return !(d.UnreadBatches == 0 || d.Ready < window) })
	last := taskID(t, w.submitOne(&yardv1.NewTask{Type: "x", Tasklist: "other"})) // what the purge takes is older than this one
	w.eventually(func() error {
		if p, err := w.client.Purge(w.soon(), yard.OfTasklist("other"), yard.PurgeOptions{}); err != nil || p.Cancelled == 0 {
			return fmt.Errorf("%s is too young, or unread: %+v %v", last, p, err)
		}
		return nil
	})
	after := ""
	p, err := w.client.Purge(w.soon(), yard.OfTasklist(list), yard.PurgeOptions{Rate: 100_000, Progress: func(yard.Purged) {
		if after == "" { // behind the first step
			after = w.submitOne(&yardv1.NewTask{Type: "after"})
		}
	}})
	if err != nil || p.Cancelled != tasks || p.UnreadBatches != 0 || p.Cursor != "" {
		t.Fatalf("%+v %v", p, err)
	}
	for i := 0; i < tasks; i += batch / 4 {
		equal(t, "state", stateOf(w.get(ids[i])), "cancelled")
	}
	equal(t, "what came after", w.takeOne().TaskId, after)
}
