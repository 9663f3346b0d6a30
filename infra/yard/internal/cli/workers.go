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
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				all, err := liveWorkers(ctx, c)
				if err != nil {
					return err
				}
				return a.printWorkers(all)
			})
		},
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
	if a.json {
		return a.printJSON(all)
	}
	var t table
	if a.wide {
		t.row("WORKER", "VERSION", "HOST", "TASKLISTS", "STATE", "ATTEMPTS", "RUNNING FOR", "HEARD", "ID", "DRAINED BY", "REASON", "OLDEST ATTEMPT")
	} else {
		t.row("WORKER", "VERSION", "HOST", "TASKLISTS", "STATE", "ATTEMPTS", "RUNNING FOR", "HEARD")
	}
	for _, w := range all.Workers {
		cells := []any{orDash(w.Worker), orDash(w.Version), orDash(w.Host), orDash(strings.Join(w.Tasklists, ", ")), workerState(w), w.AttemptsCount, lasting(w.RunningForMs), ago(w.HeardAgoMs)}
		if a.wide {
			oldest := ""
			if len(w.Attempts) > 0 {
				oldest = fmt.Sprintf("%s %s for %s", w.Attempts[0].TaskId, w.Attempts[0].Type, lasting(w.Attempts[0].RunningForMs))
			}
			cells = append(cells, w.WorkerId, orDash(w.Drain.GetBy()), orDash(w.Drain.GetReason()), orDash(oldest))
		}
		t.row(cells...)
	}
	if err := a.printTable(&t); err != nil {
		return err
	}
	if known := time.Duration(all.KnownForMs) * time.Millisecond; known < workersKnownAfter {
		_, err := fmt.Fprintf(a.Out, "\nothers may not be heard yet: history has listened for %s\n", lasting(all.KnownForMs))
		return err
	}
	return nil
}
