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
