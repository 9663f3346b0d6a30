package settings

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

// pollersKnownAfter is when the owner of a shard knows all workers that polled in the last 5 minutes.
const pollersKnownAfter = 5 * time.Minute

func tasklistPollers(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "pollers TASKLIST", Short: "List the workers that polled a tasklist in the last 5 minutes",
		Long: `List the workers that polled a tasklist in the last 5 minutes, with the version of their program,
the types that they accept, when their last poll came, and how many of their polls wait now.

Matching keeps this in memory: after another node has taken over, workers appear with their next poll.`,
		Example: "  yard tasklist pollers mail",
		Args:    command.ArgCount(1, 1, "one tasklist"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			all := &yardv1.TasklistPollersResponse{}
			for req := (&yardv1.TasklistPollersRequest{Tasklist: args[0]}); ; {
				page, err := c.Wire().TasklistPollers(ctx, req)
				if err != nil {
					return err
				}
				all.Pollers, all.KnownForMs = append(all.Pollers, page.Pollers...), page.KnownForMs
				if req.Cursor = page.NextCursor; req.Cursor == "" {
					return printPollers(a, all)
				}
			}
		}),
	}
}

func printPollers(a *command.App, all *yardv1.TasklistPollersResponse) error {
	return a.Show(all, func(t *command.Table) {
		t.Row("WORKER", "VERSION", "LAST POLL", "WAITING", "TYPES")
		for _, p := range all.Pollers {
			t.Row(command.OrDash(p.Worker), command.OrDash(p.Version), command.Ago(p.SeenAgoMs), p.WaitingPolls, typesOf(a, p))
		}
		if known := time.Duration(all.KnownForMs) * time.Millisecond; known < pollersKnownAfter {
			t.Row()
			t.Row("earlier polls are not known: matching took over " + command.Ago(all.KnownForMs))
		}
	})
}

// typesShown is how many types of a poller a table shows that is not wide.
const typesShown = 4

func typesOf(a *command.App, p *yardv1.Poller) string {
	if p.TypesCount == 0 {
		return "all"
	}
	shown := p.Types
	if !a.Wide {
		shown = shown[:min(len(shown), typesShown)]
	}
	text := strings.Join(shown, ", ")
	if more := int(p.TypesCount) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
