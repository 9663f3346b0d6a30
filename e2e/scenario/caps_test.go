package scenario_test

import (
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// fillUp has clients submit requests of some tasks each until they are refused for a full queue, and returns how many tasks
// were accepted, and how many of those the frontend may not have known of for a moment, since no try was answered.
func (w *world) fillUp(clients, size int, task *yardv1.NewTask, path string) (accepted, unsure int) {
	w.t.Helper()
	var mu sync.Mutex
	side(clients, func() bool {
		req := &yardv1.SubmitRequest{Tasklist: list, Tasks: many(size, task)}
		resp, err := w.handIn(req)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			if e := fault.From(err); e == nil || e.Code != fault.ResourceExhausted || e.Path != path || e.RetryAfter <= 0 {
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
	w.described(list, func(d yard.TasklistInfo) bool { return !(d.Queued != int64(n) || d.MaxQueued != most) })
}

// counting waits until all owners know of the cap.
func (w *world) counting() {
	w.t.Helper()
	counts := make(chan int32, 64)
	sub, err := w.inside().Conn().Subscribe(topology.HintLoad, func(m *nats.Msg) {
		var load rpcv1.HistoryLoad
		if load.UnmarshalVT(m.Data) == nil && len(load.Counted) > 0 {
			select {
			case counts <- load.Partition:
			default:
			}
		}
	})
	testkit.NoError(w.t, err)
	defer func() { _ = sub.Unsubscribe() }() // fails where the connection is closed
	for known := map[int32]bool{}; len(known) < w.stack.Partitioning.History; {
		select {
		case p := <-counts:
			known[p] = true
		case <-w.soon().Done():
			w.t.Fatalf("only %v report what is queued", known)
		}
	}
}

// fill floods a tasklist of five clients up to its cap, and returns how many tasks it has then. What is on its way may be
// counted twice, so the last ones come one request after the other.
func (w *world) fill(most, size int) int {
	w.t.Helper()
	accepted, unsure := w.fillUp(5, size, &yardv1.NewTask{Type: "x"}, "/tasks/0/tasklist")
	w.queued(accepted, most)
	more, again := w.fillUp(1, size, &yardv1.NewTask{Type: "x"}, "/tasks/0/tasklist")
	acceptedWithin(w.t, accepted+more, unsure+again, most, size)
	w.queued(accepted+more, most)
	return accepted + more
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
	testkit.Slow(t, "floods the system")
	everywhere(t, func(t *testing.T, w *world) {
		const most, size = 1000, 7
		if l, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, MaxQueued: most}); err != nil || l.MaxQueued != most {
			t.Fatalf("%+v %v", l, err)
		}
		w.counting()
		first := w.fill(most, size)
		again, _ := w.fillUp(5, size, &yardv1.NewTask{Type: "x"}, "/tasks/0/tasklist")
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
		second := w.fill(most, size)
		drain(w, map[string]bool{}, second)
		testkit.NoError(t, testkit.Err(w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list})))
		w.submit(many(1000, &yardv1.NewTask{Type: "x"})...)
		w.submit(many(1000, &yardv1.NewTask{Type: "x"})...)
	})
}

// TestI7_WhatIsOnDiskCountsForTheCap: a backlog of many windows, most of it unread, is counted, also by an owner and a frontend
// that have just started.
func TestI7_WhatIsOnDiskCountsForTheCap(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "floods the system")
	const most, size, window = 5000, 50, 200
	services := stack.DefaultServices()
	services.History.Partition.WindowTasks = window
	cfg := stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir(), Services: &services}
	w := enter(t, own(t, cfg))
	testkit.NoError(t, testkit.Err(w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, MaxQueued: most})))
	w.counting()
	first := w.fill(most, size)
	w = w.restarted(cfg)
	w.queued(first, most)
	more, _ := w.fillUp(5, size, &yardv1.NewTask{Type: "x"}, "/tasks/0/tasklist")
	equal(t, "accepted at the cap", more, 0)
	drain(w, map[string]bool{}, first)
	w.queued(0, most)
	w.fill(most, size)
}
