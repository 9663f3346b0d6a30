package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// drainLists are the tasklists of this test: of any, some partitions are served by each process.
const drainLists = 4

// drainedWorker runs quick tasks of all tasklists, and counts them.
type drainedWorker struct {
	began atomic.Int64
	ended chan error
}

func startDrained(t *testing.T, client *yard.Client, name string) *drainedWorker {
	t.Helper()
	d := &drainedWorker{ended: make(chan error, 1)}
	var more []string
	for n := range drainLists - 1 {
		more = append(more, drainList(n+1))
	}
	w := yard.NewWorker(client, drainList(0), yard.WithIdentity(name), yard.WithTasklists(more...), yard.WithConcurrency(2*drainLists), yard.WithPollWait(idleWait))
	yard.Handle(w, string(quick), func(context.Context, string) (string, error) {
		d.began.Add(1)
		return "", nil
	})
	ctx, stop := context.WithCancel(context.Background())
	go func() { d.ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-d.ended; err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
	})
	return d
}

func drainList(n int) string { return fmt.Sprint("drained-", n) }

// idOf waits until a worker is heard.
func idOf(t *testing.T, client *yard.Client, name string) (id string) {
	t.Helper()
	testkit.Eventually(t, within, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		live, err := client.Workers(ctx)
		if err != nil {
			return err
		}
		for _, w := range live.All {
			if w.Worker == name {
				id = w.ID
				return nil
			}
		}
		return fmt.Errorf("%s is not among %v", name, live.All)
	})
	return id
}

// noPolls waits until matching has none of a worker's polls.
func noPolls(t *testing.T, client *yard.Client, name string) {
	t.Helper()
	testkit.Eventually(t, within, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		for n := range drainLists {
			pollers, err := client.TasklistPollers(ctx, drainList(n))
			if err != nil {
				return err
			}
			for _, p := range pollers.All {
				if p.Worker == name && p.WaitingPolls > 0 {
					return fmt.Errorf("%d polls of %s wait", p.WaitingPolls, name)
				}
			}
		}
		return nil
	})
}

// TestADrainSurvivesWhoTookIt: tasks flow while frontends, matching and history are killed in turn. The drained worker begins nothing, the other one runs all; a stop
// reaches its worker while the frontend is away that took it.
func TestADrainSurvivesWhoTookIt(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	c := cluster.Start(t, binaries, instances)
	client := c.Client(domain)
	define(t, c, client, yard.TaskType{Name: string(quick)})
	drained := startDrained(t, client, "drained")
	startDrained(t, client, "other")
	id := idOf(t, client, "drained")
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		t.Cleanup(cancel)
		return ctx
	}
	testkit.NoError(t, testkit.Err(client.DrainWorker(soon(), id, yard.WorkerDrain{By: "ann"})))
	noPolls(t, client, "drained")
	before := drained.began.Load()
	round := func(what string) {
		t.Helper()
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				if _, err := client.Run(soon(), yard.Task{Tasklist: drainList(n % drainLists), Type: string(quick), Payload: "x"}); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		all.Wait()
		if n := drained.began.Load(); n != before {
			t.Errorf("%s: the drained worker began %d tasks", what, n-before)
		}
	}
	round("at first")
	for _, s := range []cluster.Service{cluster.Frontend, cluster.Matching, cluster.History} {
		for i := range c.Instances(s) {
			what := fmt.Sprint(s, " ", i)
			c.Kill(s, i)
			if c.Instances(s) > 1 {
				round(what + " is away")
			}
			c.Restart(s, i)
			c.AwaitProcess(s, i)
			round(what + " is back")
		}
	}
	testkit.NoError(t, testkit.Err(client.StopWorker(soon(), id, yard.WorkerDrain{By: "ann"})))
	c.Kill(cluster.Frontend, 0)
	select {
	case err := <-drained.ended:
		drained.ended <- nil
		if stopped := new(yard.StoppedError); !errors.As(err, &stopped) || stopped.By != "ann" {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(within):
		t.Error("it did not end")
	}
	round("it has stopped")
	c.Restart(cluster.Frontend, 0)
	c.AwaitProcess(cluster.Frontend, 0)
	c.CheckAll()
}
