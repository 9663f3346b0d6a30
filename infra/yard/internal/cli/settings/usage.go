package settings

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

func domainUsage(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "usage [DOMAIN]", Short: "Show how much domains use of their quotas, and which are paused or drained",
		Long: `Show how much a domain uses of its quota, or each domain: the tasks and the bytes that it submitted
in the last second, its polls that wait, its tasks that wait and their bytes, as one frontend knows
them. A dash means that there is no quota. Nothing is counted for a domain without any.`,
		Example: `  yard domain usage
  yard domain usage shop -o json`,
		Args: command.ArgCount(0, 1, "one name, or none for all domains"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, names []string) error {
			if len(names) == 1 {
				d, err := c.Admin().GetDomain(ctx, names[0])
				if err != nil {
					return err
				}
				return printUsage(a, []yard.Domain{d})
			}
			var all []yard.Domain
			for listed, err := range c.Admin().Domains(ctx) {
				if err != nil {
					return err
				}
				switch d, err := c.Admin().GetDomain(ctx, listed.Name); {
				case err == nil:
					all = append(all, d)
				case fault.CodeOf(err) != fault.NotFound: // else it was deleted a moment ago
					return err
				}
			}
			return printUsage(a, all)
		}),
	}
}

// gotten is a domain as domains.get answers it.
func gotten(d yard.Domain) *yardv1.GetDomainResponse {
	return &yardv1.GetDomainResponse{Domain: d.Wire(), Pause: d.Pause.Wire(), Drain: d.Drain.Wire(), Use: d.Use.Wire()}
}

func printUsage(a *command.App, domains []yard.Domain) error {
	return a.Show(map[string][]*yardv1.GetDomainResponse{"domains": command.Each(domains, gotten)}, func(t *command.Table) {
		t.Row("DOMAIN", "TASKS/S", "QUOTA", "USED", "BYTES/S", "QUOTA", "USED", "POLLS", "QUOTA", "USED", "WAITING", "QUOTA", "USED", "BYTES", "QUOTA", "USED", "PAUSED", "DRAINED")
		for _, d := range domains {
			use := d.Use
			if use == nil {
				use = &yard.Quota{}
			}
			cells := []any{d.Name}
			cells = append(cells, usedOf(use.SubmitTasksPerSecond, d.Quota.SubmitTasksPerSecond)...)
			cells = append(cells, usedOf(use.SubmitBytesPerSecond, d.Quota.SubmitBytesPerSecond)...)
			cells = append(cells, usedOf(int64(use.OpenPolls), int64(d.Quota.OpenPolls))...)
			cells = append(cells, usedOf(use.WaitingTasks, d.Quota.WaitingTasks)...)
			cells = append(cells, usedOf(use.StoredBytes, d.Quota.StoredBytes)...)
			t.Row(append(cells, pausedUntil(d.Pause), pausedUntil(d.Drain))...)
		}
	})
}

// usedOf is how much of a quota is used, the quota, and the share of it; dashes if there is no quota.
func usedOf(used, quota int64) []any {
	if quota == 0 {
		return []any{command.OrDash(used), "-", "-"}
	}
	return []any{used, quota, fmt.Sprintf("%d%%", 100*used/quota)}
}
