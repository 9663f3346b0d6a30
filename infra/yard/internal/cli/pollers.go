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

// pollersKnownAfter is when the owner of a shard knows all workers that polled in the last 5 minutes.
const pollersKnownAfter = 5 * time.Minute

func (a *app) tasklistPollers() *cobra.Command {
	return &cobra.Command{
		Use: "pollers TASKLIST", Short: "List the workers that polled a tasklist in the last 5 minutes",
		Long: `List the workers that polled a tasklist in the last 5 minutes, with the version of their program,
the types that they accept, when their last poll came, and how many of their polls wait now.

Matching keeps this in memory: after another node has taken over, workers appear with their next poll.`,
		Example: "  yard tasklist pollers mail",
		Args:    argCount(1, 1, "one tasklist"),
		RunE: a.client(func(ctx context.Context, c *yard.Client, args []string) error {
			all := &yardv1.TasklistPollersResponse{}
			for req := (&yardv1.TasklistPollersRequest{Tasklist: args[0]}); ; {
				page, err := c.Wire().TasklistPollers(ctx, req)
				if err != nil {
					return err
				}
				all.Pollers, all.KnownForMs = append(all.Pollers, page.Pollers...), page.KnownForMs
				if req.Cursor = page.NextCursor; req.Cursor == "" {
					return a.printPollers(all)
				}
			}
		}),
	}
}

func (a *app) printPollers(all *yardv1.TasklistPollersResponse) error {
	return a.show(all, func(t *table) {
		t.row("WORKER", "VERSION", "LAST POLL", "WAITING", "TYPES")
		for _, p := range all.Pollers {
			t.row(orDash(p.Worker), orDash(p.Version), ago(p.SeenAgoMs), p.WaitingPolls, a.typesOf(p))
		}
		if known := time.Duration(all.KnownForMs) * time.Millisecond; known < pollersKnownAfter {
			t.row()
			t.row("earlier polls are not known: matching took over " + ago(all.KnownForMs))
		}
	})
}

// typesShown is how many types of a poller a table shows that is not wide.
const typesShown = 4

func (a *app) typesOf(p *yardv1.Poller) string {
	if p.TypesCount == 0 {
		return "all"
	}
	shown := p.Types
	if !a.wide {
		shown = shown[:min(len(shown), typesShown)]
	}
	text := strings.Join(shown, ", ")
	if more := int(p.TypesCount) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ago prints how long ago something was.
func ago(ms int64) string { return lasting(ms) + " ago" }

// lasting prints a duration of the API, to the second where it is long.
func lasting(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	return d.String()
}
