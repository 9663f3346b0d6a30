package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/explain"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// explained waits until a task waits for a reason.
func explained(t *testing.T, client *yard.Client, task, want string) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		why, err := explain.Task(ctx, client, task)
		if err != nil {
			return err
		}
		var found []string
		for _, r := range why.Reasons {
			found = append(found, r.Code)
		}
		if slices.Contains(found, want) {
			return nil
		}
		return fmt.Errorf("the reasons are %v, want %s", found, want)
	})
}

// TestExplainWithoutMatching: while no matching process answers.
func TestExplainWithoutMatching(t *testing.T) {
	testkit.Slow(t, "pauses processes of a cluster")
	t.Parallel()
	c := cluster.Start(t, binaries, instances)
	testkit.NoError(t, testkit.Err(c.Admin().PutDomain(t.Context(), yard.Domain{Name: domain})))
	client := c.Client(domain)
	id, err := client.Submit(t.Context(), yard.Task{Type: "pay", Tasklist: "explained"})
	testkit.NoError(t, err)
	explained(t, client, id, "NO_WORKER")
	for i := range c.Instances(cluster.Matching) {
		c.Pause(cluster.Matching, i)
	}
	explained(t, client, id, "MATCHING_SILENT")
	for i := range c.Instances(cluster.Matching) {
		c.Resume(cluster.Matching, i)
	}
	explained(t, client, id, "NO_WORKER")
}

// TestExplainALimitThatIsCounted: a limit that is new grants nothing before each partition of history has said which of its attempts use one. One that
// is served by no one has not. Another process takes such a partition over after some seconds, so it is tried with further limits.
func TestExplainALimitThatIsCounted(t *testing.T) {
	testkit.Slow(t, "pauses processes of a cluster")
	t.Parallel()
	c := cluster.Start(t, binaries, instances)
	testkit.NoError(t, testkit.Err(c.Admin().PutDomain(t.Context(), yard.Domain{Name: domain})))
	client := c.Client(domain)
	const tries, perType = 6, 10 // some of them in partitions that are served
	for try := range tries {
		typ := fmt.Sprint("pay", try)
		all := make([]string, perType)
		for i := range all {
			var err error
			all[i], err = client.Submit(t.Context(), yard.Task{Type: typ, Tasklist: "counted"})
			testkit.NoError(t, err)
		}
		explained(t, client, all[0], "NO_WORKER")
		c.Pause(cluster.History, try%instances)
		testkit.NoError(t, testkit.Err(client.PutType(t.Context(), yard.TaskType{Name: typ, MaxConcurrency: 1})))
		counted := anyExplained(t, client, all, "LIMIT_UNKNOWN")
		c.Resume(cluster.History, try%instances)
		c.AwaitReady()
		explained(t, client, all[0], "NO_WORKER")
		if counted {
			return
		}
	}
	t.Errorf("no task waited since a limit was being counted")
}

// anyExplained reports whether one of some tasks waits for a reason within some seconds.
func anyExplained(t *testing.T, client *yard.Client, all []string, want string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var found atomic.Bool
	var asking sync.WaitGroup
	for _, id := range all {
		asking.Go(func() {
			for ctx.Err() == nil {
				why, err := explain.Task(ctx, client, id)
				if err == nil && slices.ContainsFunc(why.Reasons, func(r explain.Reason) bool { return r.Code == want }) {
					found.Store(true)
					cancel()
				}
			}
		})
	}
	asking.Wait()
	return found.Load()
}
