package chaos_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// flooding is a domain beside the others.
const flooding = "flooding"

const (
	lagWindow, lagBatch = 300, 100
	floodBatches        = 60
)

// tenant submits tasks of one priority to a tasklist, and counts those that its worker has run.
type tenant struct {
	t        *testing.T
	client   *yard.Client
	tasklist string
	mu       sync.Mutex
	ran      int
}

func (n *tenant) submit() {
	n.t.Helper()
	request := make([]yard.Task, lagBatch)
	for i := range request {
		request[i] = yard.Task{Type: string(quick), Tasklist: n.tasklist, Payload: "x"}
	}
	testkit.Eventually(n.t, within, func() error {
		_, err := n.client.SubmitMany(n.t.Context(), request)
		return err
	})
}

// work runs a worker until the test ends.
func (n *tenant) work() {
	working, stop := context.WithCancel(context.Background())
	w := yard.NewWorker(n.client, n.tasklist, yard.WithConcurrency(100))
	yard.Handle(w, string(quick), func(context.Context, string) (string, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ran++
		return "", nil
	})
	var running sync.WaitGroup
	running.Go(func() {
		testkit.Check(n.t, w.Run(working))
	})
	n.t.Cleanup(func() { stop(); running.Wait() })
}

func (n *tenant) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ran
}

// await waits until so many tasks have run.
func (n *tenant) await(what string, want int) {
	n.t.Helper()
	testkit.Eventually(n.t, within, func() error {
		if got := n.count(); got < want {
			return fmt.Errorf("%s: %d of %d tasks have run", what, got, want)
		}
		return nil
	})
}

// TestI11_AFloodHoldsUpNobodyAfterAKill: a domain without a worker has many windows of tasks of one priority, or a tasklist.
// Another's tasks of that priority run, also after all owners of partitions are killed; then the flood gets its worker, and
// each of its tasks is completed once.
func TestI11_AFloodHoldsUpNobodyAfterAKill(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	for _, f := range []struct{ what, domain, tasklist string }{{"a domain", flooding, tasklist}, {"a tasklist", domain, "bulk"}} {
		t.Run(f.what, func(t *testing.T) {
			t.Parallel()
			floodOf(t, f.domain, f.tasklist)
		})
	}
}

func floodOf(t *testing.T, of, list string) {
	c := cluster.Start(t, binaries, instances, cluster.WithFlagsOf(cluster.History, "--partition.window-tasks", fmt.Sprint(lagWindow)))
	shop, flood := &tenant{t: t, client: c.Client(domain), tasklist: tasklist}, &tenant{t: t, client: c.Client(of), tasklist: list}
	define(t, c, shop.client, yard.TaskType{Name: string(quick)})
	testkit.NoError(t, testkit.Err(c.Admin().PutDomain(t.Context(), yard.Domain{Name: flooding})))
	for range floodBatches {
		flood.submit()
	}
	shop.work()
	shop.submit()
	shop.await("behind a flood", lagBatch)
	for i := range c.Instances(cluster.History) {
		c.Kill(cluster.History, i)
		c.Restart(cluster.History, i)
	}
	shop.submit()
	shop.await("after a kill", 2*lagBatch)
	flood.work()
	flood.await("the flood", lagBatch*floodBatches)
	testkit.Eventually(t, within, func() error {
		d, err := flood.client.Wire().DescribeTasklist(t.Context(), list)
		if err == nil && d.Ready+d.Running+d.UnreadBatches > 0 {
			err = fmt.Errorf("%d tasks are ready, %d run, %d batches are not read", d.Ready, d.Running, d.UnreadBatches)
		}
		return err
	})
	if got, other := flood.count(), shop.count(); got != lagBatch*floodBatches || other != 2*lagBatch {
		t.Errorf("%d tasks of the flood have run, and %d of the other", got, other)
	}
	c.CheckAll()
}
