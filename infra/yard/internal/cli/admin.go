package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func (a *app) tasklistCommand() *cobra.Command {
	describe := &cobra.Command{
		Use: "describe TASKLIST", Short: "Show how many tasks of a tasklist are queued, running and finished",
		Example: "  yard tasklist describe mail",
		Args:    argCount(1, 1, "one tasklist"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				d, err := c.Wire().DescribeTasklist(ctx, args[0])
				if err != nil {
					return err
				}
				if !a.json && unused(d) {
					return a.printUnused(d)
				}
				return a.printTasklist(d)
			})
		},
	}
	return group("tasklist", "Look at tasklists", describe)
}

// unused tells whether nothing is known of a tasklist. Slots are the whole domain's, and what is
// unread the whole system's.
func unused(d *yardv1.DescribeTasklistResponse) bool {
	return d.Ready+d.Running+d.Backoff+d.Waiting+d.WaitingPolls+d.Completed+d.Failed+d.Dead+d.Expired == 0
}

func (a *app) printUnused(d *yardv1.DescribeTasklistResponse) error {
	_, err := fmt.Fprintf(a.Out, "tasklist %s (domain %s) is not known: it has no unfinished task, no poll, and no recently finished task; a tasklist exists as soon as it is used\n", d.Tasklist, a.domain)
	if err == nil && d.UnreadBatches > 0 {
		_, err = fmt.Fprintf(a.Out, "%d batches of tasks are on disk only, and some may be for it\n", d.UnreadBatches)
	}
	return err
}

func (a *app) printTasklist(d *yardv1.DescribeTasklistResponse) error {
	if a.json {
		return a.printJSON(d)
	}
	var t table
	t.row("tasklist", d.Tasklist+" (domain "+a.domain+")")
	t.row("ready", d.Ready, "oldest for "+(time.Duration(d.OldestReadyMs)*time.Millisecond).String())
	t.row("running", d.Running)
	t.row("backoff", d.Backoff, "failed, about to be tried again")
	t.row("waiting", d.Waiting, "in the timer store")
	t.row("unread", d.UnreadBatches, "batches on disk only")
	if d.LaggingLanes > 0 {
		t.row("lags", d.LaggingLanes, "priorities go on without this domain: it needs more workers")
	}
	t.row("polls", d.WaitingPolls, "waiting right now")
	t.row("completed", d.Completed, "since the partitions' owners took over")
	t.row("failed", d.Failed)
	t.row("dead", d.Dead)
	t.row("expired", d.Expired)
	for _, s := range d.Slots {
		t.row("slots of "+s.Type, s.InUse, "of", s.Limit)
	}
	return a.printTable(&t)
}

func (a *app) domainCommand() *cobra.Command {
	return group("domain", "Create, change, list and delete domains (tenants)", a.domainPut(), a.domainGet(), a.domainList(), a.domainDelete())
}

// withAdmin runs do with an admin client.
func (a *app) withAdmin(ctx context.Context, do func(ctx context.Context, admin *yard.Admin) error) error {
	return a.withClient(ctx, func(ctx context.Context, c *yard.Client) error { return do(ctx, c.Admin()) })
}

func (a *app) domainPut() *cobra.Command {
	var d yard.Domain
	cmd := &cobra.Command{
		Use: "put NAME", Short: "Create or change a domain",
		Long:    "Create a domain, or change the settings that are given as flags.",
		Example: `  yard domain put shop --description "the online shop" --retention 72h`,
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAdmin(cmd.Context(), func(ctx context.Context, admin *yard.Admin) error {
				have, err := admin.GetDomain(ctx, args[0])
				if err != nil && !errors.Is(err, &fault.Error{Code: fault.NotFound}) {
					return err
				}
				have.Name = args[0]
				if cmd.Flags().Changed("description") {
					have.Description = d.Description
				}
				if cmd.Flags().Changed("retention") {
					have.Retention = d.Retention
				}
				stored, err := admin.PutDomain(ctx, have)
				if err != nil {
					return err
				}
				return a.printDomains([]yard.Domain{stored})
			})
		},
	}
	cmd.Flags().StringVar(&d.Description, "description", "", "for people")
	cmd.Flags().DurationVar(&d.Retention, "retention", 0, "how long finished tasks are kept, 15m to 8784h; default 168h")
	return cmd
}

func (a *app) domainGet() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a domain", Args: argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAdmin(cmd.Context(), func(ctx context.Context, admin *yard.Admin) error {
				d, err := admin.GetDomain(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printDomains([]yard.Domain{d})
			})
		},
	}
}

func (a *app) domainList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all domains", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withAdmin(cmd.Context(), func(ctx context.Context, admin *yard.Admin) error {
				domains, err := admin.ListDomains(ctx)
				if err != nil {
					return err
				}
				return a.printDomains(domains)
			})
		},
	}
}

func (a *app) domainDelete() *cobra.Command {
	var revision int64
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a domain without unfinished tasks, and its task types",
		Long: `Delete a domain without unfinished tasks, and its task types. Its finished tasks are kept for
their retention; a domain created again with the same name has them.`,
		Example: "  yard domain delete shop",
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAdmin(cmd.Context(), func(ctx context.Context, admin *yard.Admin) error {
				d, err := admin.DeleteDomain(ctx, args[0], revision)
				if err != nil {
					return err
				}
				return a.printDomains([]yard.Domain{d})
			})
		},
	}
	cmd.Flags().Int64Var(&revision, "revision", 0, "delete only this revision, as --output wide shows it; 0 = any")
	return cmd
}

func (a *app) printDomains(domains []yard.Domain) error {
	if a.json {
		list := &yardv1.ListDomainsResponse{}
		for _, d := range domains {
			list.Domains = append(list.Domains, &yardv1.Domain{Name: d.Name, Description: d.Description, RetentionMs: d.Retention.Milliseconds(), Revision: d.Revision})
		}
		return a.printJSON(list)
	}
	var t table
	t.row(a.more([]any{"DOMAIN", "RETENTION", "DESCRIPTION"}, "REVISION")...)
	for _, d := range domains {
		t.row(a.more([]any{d.Name, span(d.Retention), d.Description}, d.Revision)...)
	}
	return a.printTable(&t)
}
