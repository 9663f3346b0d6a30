package scenario_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// fillUp has clients submit requests of some tasks each until they are refused for a full queue, and returns how many tasks
// were accepted, and how many of those the frontend may not have known of for a moment, since no try was answered.
func (w *world) fillUp(clients, size int) (accepted, unsure int) {
	w.t.Helper()
	var mu sync.Mutex
	side(clients, func() bool {
		req := &yardv1.SubmitRequest{Tasklist: list}
		for range size {
			req.Tasks = append(req.Tasks, &yardv1.NewTask{Type: "x"})
		}
		resp, err := w.handIn(req)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			if e := fault.From(err); e == nil || e.Code != fault.ResourceExhausted || e.Path != "/tasks/0/tasklist" || e.RetryAfter <= 0 {
				w.t.Errorf("a flood was answered %v at %q, retry after %v", err, e.Path, e.RetryAfter)
			}
			return false
		}
		accepted += len(resp.TaskIDs())
		if req.Tries > 1 {
			unsure += size
		}
		return true
	})
	return accepted, unsure
}

// queued waits until submits see so many tasks queued.
func (w *world) queued(n, most int) {
	w.t.Helper()
	w.eventually(func() error {
		d, err := w.client.DescribeTasklist(w.soon(), list)
		if err == nil && (d.Queued != int64(n) || d.MaxQueued != most) {
			err = fmt.Errorf("%d of %d are queued, want %d of %d", d.Queued, d.MaxQueued, n, most)
		}
		return err
	})
}

// acceptedWithin checks that so many tasks were accepted under a cap, but for a request that had no room.
func acceptedWithin(t *testing.T, accepted, unsure, most, size int) {
	t.Helper()
	if accepted > most+unsure || accepted <= most-size {
		t.Errorf("%d tasks were accepted, at most %d should be", accepted, most)
	}
}

// TestAQueueAtItsCapRefuses: five clients flood a tasklist up to its cap and are refused; others go on; once its queue
// is drained, it takes as many again.
func TestAQueueAtItsCapRefuses(t *testing.T) {
	testkit.Long(t, "floods the system")
	everywhere(t, func(t *testing.T, w *world) {
		const most, size = 1000, 7
		if l, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, MaxQueued: most}); err != nil || l.MaxQueued != most {
			t.Fatalf("%+v %v", l, err)
		}
		first, unsure := w.fillUp(5, size)
		acceptedWithin(t, first, unsure, most, size)
		w.queued(first, most)
		again, _ := w.fillUp(5, most-first+1)
		equal(t, "accepted at the cap", again, 0)

		w.submitOne(&yardv1.NewTask{Type: "x", Tasklist: "other"})
		later := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 3_600_000})
		equal(t, "cancel", w.cancel(later).Code, "OK")
		w.queued(first, most)

		seen := map[string]bool{}
		held := w.take(1)
		equal(t, "a failure", w.fail(held[0], &yardv1.Failure{Message: "again", DelayMs: 60_000}), "OK")
		drain(w, seen, first-1)
		w.queued(0, most)
		second, unsure := w.fillUp(5, size)
		acceptedWithin(t, second, unsure, most, size)
		drain(w, map[string]bool{}, second)
		if _, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list}); err != nil {
			t.Fatal(err)
		}
		w.submit(make1000()...)
		w.submit(make1000()...)
	})
}

func make1000() (all []*yardv1.NewTask) {
	for range 1000 {
		all = append(all, &yardv1.NewTask{Type: "x"})
	}
	return all
}

// TestI7_WhatIsOnDiskCountsForTheCap: a backlog of many windows, most of it unread, is counted, also by an owner and a frontend
// that have just started.
func TestI7_WhatIsOnDiskCountsForTheCap(t *testing.T) {
	t.Parallel()
	testkit.Long(t, "floods the system")
	const most, size, window = 5000, 50, 200
	services := stack.DefaultServices()
	services.History.Partition.WindowTasks = window
	cfg := stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir(), Services: &services}
	w := enter(t, own(t, cfg))
	if _, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, MaxQueued: most}); err != nil {
		t.Fatal(err)
	}
	first, unsure := w.fillUp(5, size)
	acceptedWithin(t, first, unsure, most, size)
	w.queued(first, most)
	if err := closeStack(w.stack); err != nil {
		t.Fatalf("the stack did not end well: %v", err)
	}
	w = join(t, own(t, cfg), w.domain)
	w.queued(first, most)
	more, _ := w.fillUp(5, most-first+1)
	equal(t, "accepted at the cap", more, 0)
	drain(w, map[string]bool{}, first)
	w.queued(0, most)
	second, unsure := w.fillUp(5, size)
	acceptedWithin(t, second, unsure, most, size)
}
