package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

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
				if cmd.Flags().Changed("max-concurrency") {
					have.MaxConcurrency = d.MaxConcurrency
				}
				if cmd.Flags().Changed(perGroupFlag) {
					have.MaxConcurrencyPerGroup = d.MaxConcurrencyPerGroup
				}
				if cmd.Flags().Changed("rate") {
					have.Rate = d.Rate
				}
				if cmd.Flags().Changed("dead-letters-max-age") {
					have.DeadLettersMaxAge = d.DeadLettersMaxAge
				}
				if cmd.Flags().Changed("dead-letters-max") {
					have.DeadLettersMax = d.DeadLettersMax
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
	durationVar(cmd.Flags(), &d.Retention, "retention", 0, "how long finished tasks are kept, 15m to 8784h; default 168h")
	cmd.Flags().IntVar(&d.MaxConcurrency, "max-concurrency", 0, "attempts of all its tasks that run at once; 0 = no limit")
	perGroup(cmd.Flags(), &d.MaxConcurrencyPerGroup)
	rateFlags(cmd.Flags(), &d.Rate)
	durationVar(cmd.Flags(), &d.DeadLettersMaxAge, "dead-letters-max-age", 0, "how long dead letters are kept, 1m to 8784h; 0 = until they are redriven or purged")
	cmd.Flags().Int64Var(&d.DeadLettersMax, "dead-letters-max", 0, "how many dead letters are kept, the latest; 0 = all")
	return cmd
}

func (a *app) domainGet() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a domain",
		Example: "  yard domain get shop",
		Args:    argCount(1, 1, "one name"),
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
		Use: "list", Short: "List all domains",
		Example: "  yard domain list",
		Args:    noArgs,
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
		Use: "delete NAME", Short: "Delete a domain without unfinished tasks, and its settings",
		Long: `Delete a domain without unfinished tasks, its task types, its limits and the settings of its tasklists.
Its finished tasks are kept for their retention; a domain created again with the same name has them.`,
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

// keptFor is for how long something is kept; 0 = without an end.
func keptFor(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return span(d)
}

func (a *app) printDomains(domains []yard.Domain) error {
	if a.json {
		list := &yardv1.ListDomainsResponse{}
		for _, d := range domains {
			list.Domains = append(list.Domains, &yardv1.Domain{
				Name: d.Name, Description: d.Description, RetentionMs: d.Retention.Milliseconds(),
				MaxConcurrency: int32(d.MaxConcurrency), MaxConcurrencyPerGroup: int32(d.MaxConcurrencyPerGroup), Rate: wireRate(d.Rate), Revision: d.Revision,
				DeadLettersMaxAgeMs: d.DeadLettersMaxAge.Milliseconds(), DeadLettersMax: d.DeadLettersMax,
			})
		}
		return a.printJSON(list)
	}
	var t table
	t.row(a.more([]any{"DOMAIN", "RETENTION", "DESCRIPTION"}, "CONCURRENCY", "PER GROUP", "RATE", "LETTERS", "LETTERS KEPT", "REVISION")...)
	for _, d := range domains {
		t.row(a.more([]any{d.Name, span(d.Retention), d.Description}, number(float64(d.MaxConcurrency), "-"), number(float64(d.MaxConcurrencyPerGroup), "-"), rateText(d.Rate),
			number(float64(d.DeadLettersMax), "all"), keptFor(d.DeadLettersMaxAge), d.Revision)...)
	}
	return a.printTable(&t)
}
