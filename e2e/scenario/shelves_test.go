package scenario_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAStuckKeyLeavesMemory: behind a task that blocks its key wait three windows of tasks of the key. Other keys of the domain go on, before and after a
// takeover; tasks on the shelf are read, listed, changed and cancelled; then the key goes on, in order.
func TestAStuckKeyLeavesMemory(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "restarts a system of its own")
	for _, policy := range []yardv1.OrderPolicy{yardv1.OrderPolicy_ORDER_POLICY_BLOCK, yardv1.OrderPolicy_ORDER_POLICY_PARK} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			stuckKey(t, policy, 300, 900, 899)
		})
	}
}

// TestAStuckKeyOfFiftyThousand is the same with the window that a partition has.
func TestAStuckKeyOfFiftyThousand(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "hands in 50,000 tasks, and runs a part of them one after the other")
	stuckKey(t, yardv1.OrderPolicy_ORDER_POLICY_BLOCK, stack.DefaultServices().History.Partition.WindowTasks, 50_000, 2000)
}

func stuckKey(t *testing.T, policy yardv1.OrderPolicy, window, behind, run int) {
	services := stack.DefaultServices()
	services.History.Partition.WindowTasks, services.History.Partition.PurgeEvery = window, time.Second
	cfg := stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir(), Services: &services, Partitioning: topology.Partitioning{History: 1, Matching: 1}}
	w := enter(t, own(t, cfg))
	head := w.submitOne(&yardv1.NewTask{Type: "head", OrderKey: "stuck", OrderPolicy: policy})
	equal(t, "fail for good", w.fail(w.takeOne("head"), &yardv1.Failure{NonRetryable: true}), "OK")
	equal(t, "it blocks its key", w.reach(head, "backoff").Blocked, true)
	var ids []string
	for len(ids) < behind {
		var tasks []*yardv1.NewTask
		for range min(500, behind-len(ids)) {
			tasks = append(tasks, &yardv1.NewTask{Type: "step", OrderKey: "stuck", Payload: jsonPayload(fmt.Sprint(len(ids) + len(tasks)))})
		}
		ids = append(ids, w.submit(tasks...)...)
	}
	left := func() { // the most of them
		t.Helper()
		w.eventually(func() error {
			if n := meters(w.t, w.stack)[signals.ShelvedTasks.Prometheus()]; n < int64(behind-window/2) {
				return fmt.Errorf("%d of %d tasks are on the shelf", n, behind)
			}
			return nil
		})
	}
	w.othersRun()
	left()
	equal(t, "domains that lag", meters(t, w.stack)[signals.DomainsLagging.Prometheus()], 0)
	middle := ids[behind/2]
	for range 2 {
		got := w.get(middle)
		equal(t, "in the middle", got.State, yardv1.TaskState_TASK_STATE_READY)
		equal(t, "it waits for its turn", got.AwaitsTurn, true)
		found, err := w.client.List(w.soon(), yard.Filter{OrderKey: "stuck", Limit: 50})
		if err != nil || len(found) != 50 || found[0].ID != slices.Max(ids) {
			t.Errorf("listed %d: %v", len(found), err)
		}
		if err := closeStack(w.stack); err != nil {
			t.Fatalf("the stack did not end well: %v", err)
		}
		w = join(t, own(t, cfg), w.domain)
		w.othersRun()
		left()
	}
	w.update(&yardv1.TaskUpdate{TaskId: ids[behind-2], RunNow: true, Priority: 1})
	equal(t, "cancel", w.cancel(middle).Code, "OK")
	equal(t, "cancelled", w.ended(middle).State.Name(), "cancelled")
	equal(t, "changed", w.get(ids[behind-2]).Revision, 2)
	w.othersRun()
	w.examined() // with tasks on the shelf

	w.runsInOrder(head, behind, run)
}

// runsInOrder unblocks a key, and holds that so many of the tasks behind its head run in order, and the one in the middle, which was cancelled, does not.
func (w *world) runsInOrder(head string, behind, run int) {
	t := w.t
	t.Helper()
	var mu sync.Mutex
	var ran []int
	defer w.work(list, func(worker *yard.Worker) {
		yard.Handle(worker, "step", func(_ context.Context, n int) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, n)
			return nil, nil
		})
	})()
	equal(t, "cancel the head", w.cancel(head).Code, "OK")
	testkit.Eventually(t, time.Duration(run)*150*time.Millisecond, func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(ran) < run {
			return fmt.Errorf("%d of %d tasks have run", len(ran), run)
		}
		return nil
	})
	mu.Lock()
	defer mu.Unlock()
	if !slices.IsSorted(ran) || len(slices.Compact(slices.Clone(ran))) != len(ran) || slices.Contains(ran, behind/2) {
		t.Errorf("%d tasks ran, in order: %v", len(ran), slices.IsSorted(ran))
	}
}

// othersRun runs tasks of other keys of the domain.
func (w *world) othersRun() {
	w.t.Helper()
	for round := range 3 {
		var tasks []*yardv1.NewTask
		for k := range 100 {
			tasks = append(tasks, &yardv1.NewTask{Type: "other", OrderKey: fmt.Sprint("key ", round, k)})
		}
		w.submit(tasks...)
		for n := 0; n < len(tasks); {
			all := w.some(100, "other")
			w.complete(all...)
			n += len(all)
		}
	}
}
