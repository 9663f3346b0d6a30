package operations

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/audit"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// AuditCommand is `yard audit`.
func AuditCommand(a *command.App) *cobra.Command {
	var limit int
	var cluster bool
	cmd := &cobra.Command{
		Use: "audit", Short: "List what operators did: who paused, purged, redrove or changed settings, and when",
		Long: `List the requests that changed settings of the domain, or tasks that others submitted: pauses, drains,
purges, redrives, schedules, limits, types. Requests about single tasks, such as a cancel by id, are not among
them, nor are previews and requests that were refused. The last ones come first; the engine keeps 500 of each
domain, for 90 days.

USER is the login on a cluster with logins (yard auth). BY is the name that the client gave; yard gives the
name of the user of this system, or YARD_BY of the environment.`,
		Example: `  yard audit
  yard audit -n 500 --json
  yard audit --cluster        # what was done to domains`,
		Args: command.NoArgs,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, _ []string) error {
			if limit < 1 {
				return command.Usagef("--limit %d: want 1 to 500", limit)
			}
			list := func() ([]audit.Entry, error) { return audit.List(ctx, c, limit) }
			if cluster {
				list = func() ([]audit.Entry, error) { return audit.ListCluster(ctx, c.Admin(), limit) }
			}
			entries, err := list()
			if err != nil {
				return err
			}
			return printAudit(a, entries)
		}),
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "how many entries, 1 to 500")
	cmd.Flags().BoolVar(&cluster, "cluster", false, "what was done to domains, in place of in one; needs an operator's login on a cluster with logins")
	return cmd
}

// auditLine is an entry as JSON.
type auditLine struct {
	At      time.Time `json:"at"`
	Verb    string    `json:"verb"`
	User    string    `json:"user,omitempty"`
	By      string    `json:"by,omitempty"`
	Request string    `json:"request"`
	Code    string    `json:"code,omitempty"`
}

func printAudit(a *command.App, entries []audit.Entry) error {
	lines := make([]auditLine, len(entries))
	for i, e := range entries {
		lines[i] = auditLine{e.At, e.Verb, e.User, e.By, e.Request, string(e.Code)}
	}
	return a.Show(lines, func(t *command.Table) {
		if len(entries) == 0 {
			t.Row("Nothing was done.")
			return
		}
		t.Row("AT", "VERB", "USER", "BY", "OUTCOME", "REQUEST")
		for _, e := range entries {
			outcome := "done"
			if e.Code != "" {
				outcome = string(e.Code)
			}
			t.Row(command.At(e.At.UnixMilli()), e.Verb, command.OrDash(e.User), command.OrDash(e.By), outcome, e.Request)
		}
	})
}
