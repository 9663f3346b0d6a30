package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/explain"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// explained waits until one of some tasks waits for a reason.
func explained(t *testing.T, client *yard.Client, tasks []string, want string) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		var found []string
		for _, id := range tasks {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			why, err := explain.Task(ctx, client, id)
			cancel()
			if err != nil { // its partition is served by no one
				continue
			}
			for _, r := range why.Reasons {
				found = append(found, r.Code)
			}
			if slices.Contains(found, want) {
				return nil
			}
		}
		return fmt.Errorf("the reasons are %v, want %s", found, want)
	})
}

// TestExplainWithoutMatching: while no matching process answers, and while a new owner of a shard still counts the slots of a limit, since a partition of
// history does not say which of its attempts use one.
func TestExplainWithoutMatching(t *testing.T) {
	testkit.Slow(t, "pauses processes of a cluster")
	t.Parallel()
	c := cluster.Start(t, binaries, instances)
	testkit.NoError(t, testkit.Err(c.Admin().PutDomain(t.Context(), yard.Domain{Name: domain})))
	client := c.Client(domain)
	testkit.NoError(t, testkit.Err(client.PutType(t.Context(), yard.TaskType{Name: "pay", MaxConcurrency: 1})))
	var tasks []yard.Task
	for range 20 {
		tasks = append(tasks, yard.Task{Type: "pay", Tasklist: "explained"})
	}
	ids, err := client.SubmitMany(t.Context(), tasks)
	testkit.NoError(t, err)
	explained(t, client, ids[:1], "NO_WORKER")
	for i := range c.Instances(cluster.Matching) {
		c.Pause(cluster.Matching, i)
	}
	explained(t, client, ids[:1], "MATCHING_SILENT")
	c.Pause(cluster.History, 0)
	for i := range c.Instances(cluster.Matching) {
		c.Kill(cluster.Matching, i)
		c.Restart(cluster.Matching, i)
	}
	explained(t, client, ids, "LIMIT_UNKNOWN")
	c.Resume(cluster.History, 0)
	explained(t, client, ids[:1], "NO_WORKER")
}
