package workers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// workersKnownAfter is when every live worker has been heard: the longest interval of signs of life is half of it.
const workersKnownAfter = time.Minute

func workerList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the workers that are alive, and what they run",
		Long: `List the workers of the domain that send signs of life, with the version of their program, the host, whether
they are drained or stopping, how many attempts they have, for how long they have been running, and when they were last heard.

A worker that is not heard for twice the time between two of its signs is not listed any more, and its
attempts are ready again. Workers that send no signs are in "yard tasklist pollers" only.`,
		Example: "  yard worker list\n  yard worker list -o wide",
		Args:    command.NoArgs,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, _ []string) error {
			all, err := liveWorkers(ctx, c)
			if err != nil {
				return err
			}
			return printWorkers(a, all)
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

func printWorkers(a *command.App, all *yardv1.ListWorkersResponse) error {
	return a.Show(all, func(t *command.Table) {
		t.Row("WORKER", "VERSION", "HOST", "TASKLISTS", "STATE", "ATTEMPTS", "RUNNING FOR", "HEARD", command.Wide{"ID", "DRAINED BY", "REASON", "OLDEST ATTEMPT"})
		for _, w := range all.Workers {
			oldest := ""
			if len(w.Attempts) > 0 {
				oldest = fmt.Sprintf("%s %s for %s", w.Attempts[0].TaskId, w.Attempts[0].Type, command.Lasting(w.Attempts[0].RunningForMs))
			}
			t.Row(command.OrDash(w.Worker), command.OrDash(w.Version), command.OrDash(w.Host), command.OrDash(strings.Join(w.Tasklists, ", ")), workerState(w), w.AttemptsCount, command.Lasting(w.RunningForMs), command.Ago(w.HeardAgoMs),
				command.Wide{w.WorkerId, command.OrDash(w.Drain.GetBy()), command.OrDash(w.Drain.GetReason()), command.OrDash(oldest)})
		}
		if known := time.Duration(all.KnownForMs) * time.Millisecond; known < workersKnownAfter {
			t.Row()
			t.Row("others may not be heard yet: history has listened for " + command.Lasting(all.KnownForMs))
		}
	})
}
