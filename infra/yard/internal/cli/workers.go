package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// workersKnownAfter is when every live worker has been heard: the longest interval of signs of life is half of it.
const workersKnownAfter = time.Minute

func (a *app) workerList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the workers that are alive, and what they run",
		Long: `List the workers of the domain that send signs of life, with the version of their program, the host, whether
they are drained or stopping, how many attempts they have, for how long they have been running, and when they were last heard.

A worker that is not heard for twice the time between two of its signs is not listed any more, and its
attempts are ready again. Workers that send no signs are in "yard tasklist pollers" only.`,
		Example: "  yard worker list\n  yard worker list -o wide",
		Args:    noArgs,
		RunE: a.client(func(ctx context.Context, c *yard.Client, _ []string) error {
			all, err := liveWorkers(ctx, c)
			if err != nil {
				return err
			}
			return a.printWorkers(all)
		}),
	}
}

// liveWorkers are those of all pages.
func liveWorkers(ctx context.Context, c *yard.Client) (*yardv1.ListWorkersResponse, error) {
	all := &yardv1.ListWorkersResponse{}
	for req := (&yardv1.ListWorkersRequest{Limit: 1000}); ; {
		page, err := c.Wire().ListWorkers(ctx, req)
		if err != nil {
			return nil, err
		}
		all.Workers, all.KnownForMs = append(all.Workers, page.Workers...), page.KnownForMs
		if req.Cursor = page.NextCursor; req.Cursor == "" {
			return all, nil
		}
	}
}

// workerState is what a worker does, in a word.
func workerState(w *yardv1.LiveWorker) string {
	switch {
	case w.Drain.GetStop():
		return "stopping"
	case w.Drain != nil && w.AttemptsCount > 0:
		return "draining"
	case w.Drain != nil:
		return "drained"
	}
	return "running"
}

func (a *app) printWorkers(all *yardv1.ListWorkersResponse) error {
	return a.show(all, func(t *table) {
		t.row("WORKER", "VERSION", "HOST", "TASKLISTS", "STATE", "ATTEMPTS", "RUNNING FOR", "HEARD", wide{"ID", "DRAINED BY", "REASON", "OLDEST ATTEMPT"})
		for _, w := range all.Workers {
			oldest := ""
			if len(w.Attempts) > 0 {
				oldest = fmt.Sprintf("%s %s for %s", w.Attempts[0].TaskId, w.Attempts[0].Type, lasting(w.Attempts[0].RunningForMs))
			}
			t.row(orDash(w.Worker), orDash(w.Version), orDash(w.Host), orDash(strings.Join(w.Tasklists, ", ")), workerState(w), w.AttemptsCount, lasting(w.RunningForMs), ago(w.HeardAgoMs),
				wide{w.WorkerId, orDash(w.Drain.GetBy()), orDash(w.Drain.GetReason()), orDash(oldest)})
		}
		if known := time.Duration(all.KnownForMs) * time.Millisecond; known < workersKnownAfter {
			t.row()
			t.row("others may not be heard yet: history has listened for " + lasting(all.KnownForMs))
		}
	})
}
