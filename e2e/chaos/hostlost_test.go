package chaos_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAHostIsLost: a worker dies together with all processes of history. Those that come next have never heard it, and its task is ready again long
// before its lease is over. A worker that lives keeps its attempt, and so does one that has never given a sign of life.
func TestAHostIsLost(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "kills processes of a cluster")
	c := cluster.Start(t, binaries, instances)
	client, nc := c.Client(domain), c.Conn(domain)
	define(t, c, client, yard.TaskType{Name: string(quick), StartToClose: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 3*within)
	defer cancel()
	id := func(name string) string { return "the-worker-that-is-" + name }
	var died atomic.Bool
	go func() {
		for ctx.Err() == nil {
			for _, name := range []string{"dead", "alive"} {
				if name == "alive" || !died.Load() {
					_ = nc.Publish(topology.AliveHint(domain), fmt.Appendf(nil, `{"worker_id":%q,"every_ms":500}`, id(name)))
				}
			}
			wait(ctx, 200*time.Millisecond)
		}
	}()
	testkit.Eventually(t, within, func() error {
		heard, err := client.Workers(ctx)
		if err == nil && len(heard.All) != 2 {
			err = fmt.Errorf("%d workers are heard", len(heard.All))
		}
		return err
	})
	polls := func(list, worker string) {
		t.Helper()
		testkit.Eventually(t, within, func() error {
			tasks, err := client.Wire().Poll(ctx, &yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 1000, WorkerId: worker})
			if err == nil && len(tasks) != 1 {
				err = fmt.Errorf("%d tasks for %s", len(tasks), list)
			}
			return err
		})
	}
	tasks := map[string]string{}
	for _, name := range []string{"dead", "alive", "mute"} {
		var err error
		tasks[name], err = client.Submit(ctx, yard.Task{Type: string(quick), Tasklist: name})
		testkit.NoError(t, err)
		polls(name, id(name))
	}
	died.Store(true)
	for i := range c.Instances(cluster.History) {
		c.Kill(cluster.History, i)
	}
	for i := range c.Instances(cluster.History) {
		c.Restart(cluster.History, i)
		c.AwaitProcess(cluster.History, i)
	}
	polls("dead", "")
	for name, grants := range map[string]int{"dead": 2, "alive": 1, "mute": 1} {
		task, err := client.Get(ctx, tasks[name])
		testkit.NoError(t, err)
		if task.State != "running" || task.Grants != grants {
			t.Errorf("%s: %s after %d grants: %+v", name, task.State, task.Grants, task.Events)
		}
	}
}
