package scenario_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// crowd counts how many handlers run at once.
type crowd struct {
	mu       sync.Mutex
	now, max int
	arrived  chan struct{} // one for each that came
}

func (c *crowd) enter() {
	c.mu.Lock()
	c.now++
	c.max = max(c.max, c.now)
	c.mu.Unlock()
	c.arrived <- struct{}{}
}

func (c *crowd) leave() {
	c.mu.Lock()
	c.now--
	c.mu.Unlock()
}

func (c *crowd) most() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.max
}

// TestI8LimitsHoldOverAllWorkers: four workers with room for forty, and never more
// than three at once; then five, as soon as somebody says so; then two.
func TestI8LimitsHoldOverAllWorkers(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		const tasks = 60
		w.putType(yard.TaskType{Name: "payout", MaxConcurrency: 3})
		// The limit is known before the first task is.
		w.eventually(func() error {
			got, err := w.client.GetType(w.soon(), "payout")
			if err == nil && got.MaxConcurrency != 3 {
				err = fmt.Errorf("the limit is %d", got.MaxConcurrency)
			}
			return err
		})
		c := &crowd{arrived: make(chan struct{}, tasks)}
		gate := make(chan struct{})
		for range 4 {
			w.work(list, func(worker *yard.Worker) {
				yard.Handle(worker, "payout", func(ctx context.Context, _ struct{}) (struct{}, error) {
					c.enter()
					defer c.leave()
					return struct{}{}, hold(ctx, gate)
				})
			}, yard.WithConcurrency(10))
		}
		var ids []string
		for range tasks {
			ids = append(ids, w.submitOne(&yardv1.NewTask{Type: "payout"}))
		}
		arrive := func(n int) {
			for range n {
				<-c.arrived
			}
		}
		arrive(3)
		for range 6 { // one out, one in
			gate <- struct{}{}
			arrive(1)
		}
		equal(t, "most at once", c.most(), 3)
		w.slots(3, 3)

		w.putType(yard.TaskType{Name: "payout", MaxConcurrency: 5})
		arrive(2)
		w.slots(5, 5)
		equal(t, "most at once", c.most(), 5)

		w.putType(yard.TaskType{Name: "payout", MaxConcurrency: 2})
		w.slots(5, 2)
		for range 3 { // out, and no one in
			gate <- struct{}{}
		}
		w.slots(2, 2)
		gate <- struct{}{}
		arrive(1)
		w.slots(2, 2)

		close(gate)
		for _, id := range ids {
			want(t, w.ended(id), "completed", "submitted started completed")
		}
		equal(t, "most at once", c.most(), 5)
		w.slots(0, 2)
	})
}

// slots waits until so many slots of the only limit are in use.
func (w *world) slots(inUse, limit int32) {
	w.t.Helper()
	w.eventually(func() error {
		resp := must[yardv1.DescribeTasklistResponse](w, "tasklists.describe", &yardv1.DescribeTasklistRequest{Tasklist: list})
		if inUse == 0 && len(resp.Slots) == 0 {
			return nil
		}
		if len(resp.Slots) != 1 || resp.Slots[0].InUse != inUse || resp.Slots[0].Limit != limit {
			return fmt.Errorf("slots %v, want %d of %d", resp.Slots, inUse, limit)
		}
		return nil
	})
}

// TestI8SlotsOfTheLostComeBack: a worker that died holds its slot until its lease
// runs out, and no longer.
func TestI8SlotsOfTheLostComeBack(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "x", MaxConcurrency: 1})
		ids := w.submit(
			&yardv1.NewTask{Type: "x", HeartbeatTimeoutMs: 500},
			&yardv1.NewTask{Type: "x", StartToCloseMs: 300},
			&yardv1.NewTask{Type: "x", HeartbeatTimeoutMs: 400},
		)
		for seen := map[string]bool{}; len(seen) < len(ids); { // none is ever heard of again
			seen[w.takeOne().TaskId] = true
		}
	})
}
