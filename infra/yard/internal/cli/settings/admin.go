package settings

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// DomainCommand is `yard domain`.
func DomainCommand(a *command.App) *cobra.Command {
	one := func(a *command.App, d yard.Domain) error { return printDomains(a, []yard.Domain{d}) }
	s := settings[yard.Domain, yard.Domain]{
		kind: "domain", name: "shop",
		putHelp: help{"Create or change a domain", "Create a domain, or change the settings that are given as flags.", `  yard domain put shop --description "the online shop" --retention 72h`},
		getHelp: help{short: "Show a domain, its pause and its drain"}, listHelp: help{short: "List all domains"},
		delete: help{short: "Delete a domain without unfinished tasks, and its settings", long: `Delete a domain without unfinished tasks, its task types, its limits and the settings of its tasklists.
Its finished tasks are kept for their retention; a domain created again with the same name has them.`},
		flags: func(flags *pflag.FlagSet, d *yard.Domain) {
			flags.StringVar(&d.Description, "description", d.Description, "for people")
			command.DurationVar(flags, &d.Retention, "retention", d.Retention, "how long finished tasks are kept, 15m to 8784h; default 168h")
			flags.IntVar(&d.MaxConcurrency, "max-concurrency", d.MaxConcurrency, "attempts of all its tasks that run at once; 0 = no limit")
			perGroup(flags, &d.MaxConcurrencyPerGroup)
			rateFlags(flags, &d.Rate)
			command.DurationVar(flags, &d.DeadLettersMaxAge, "dead-letters-max-age", d.DeadLettersMaxAge, "how long dead letters are kept, 1m to 8784h; 0 = until they are redriven or purged")
			flags.Int64Var(&d.DeadLettersMax, "dead-letters-max", d.DeadLettersMax, "how many dead letters are kept, the latest; 0 = all")
			flags.IntVar(&d.Weight, "weight", d.Weight, "turns for each one of a domain with weight 1, where domains wait for their turn, 1 to 100; 0 = 1")
			flags.Int64Var(&d.FullWeightTasksPerSecond, "full-weight-tasks-per-second", d.FullWeightTasksPerSecond, "tasks that come in with the full weight in a second, those over it with a low one; 0 = all")
			flags.BoolVar(&d.FullWeightShadow, "full-weight-shadow", d.FullWeightShadow, "count tasks over --full-weight-tasks-per-second only")
			flags.BoolVar(&d.Events, "events", d.Events, "publish events of its tasks, see yard events; off: --events=false --late-after 0 --stuck-after 0")
			command.DurationVar(flags, &d.LateAfter, "late-after", d.LateAfter, "publish that a task is due and has not started for so long, 1s to 8784h; 0 = never; needs --events")
			command.DurationVar(flags, &d.StuckAfter, "stuck-after", d.StuckAfter, "publish that an attempt runs for so long, 1s to 8784h; 0 = never; needs --events")
			flags.Var(traceRatio(d), "trace-ratio", "share of its submits and scheduled runs whose traces are recorded, 0 to 1, unless the client decides; default: OTEL_TRACES_SAMPLER of the services decides")
			flags.Int64Var(&d.Quota.SubmitTasksPerSecond, "submit-tasks-per-second", d.Quota.SubmitTasksPerSecond, "tasks that are submitted in a second; 0 = any number")
			flags.Int64Var(&d.Quota.SubmitBytesPerSecond, "submit-bytes-per-second", d.Quota.SubmitBytesPerSecond, "bytes that are submitted in a second, as stored; 0 = any number")
			flags.Int64Var(&d.Quota.WaitingTasks, "waiting-tasks", d.Quota.WaitingTasks, "tasks that wait and do not run, delayed ones and those on disk, too; 0 = any number")
			flags.Int64Var(&d.Quota.StoredBytes, "stored-bytes", d.Quota.StoredBytes, "bytes that these tasks take, about as stored; 0 = any number")
			flags.IntVar(&d.Quota.OpenPolls, "open-polls", d.Quota.OpenPolls, "polls that wait at once; 0 = any number")
		},
		complete: func(d *yard.Domain, name string) { d.Name = name },
		fetch: func(c *yard.Client, ctx context.Context, name string) (yard.Domain, error) {
			return c.Admin().GetDomain(ctx, name)
		},
		store: func(c *yard.Client, ctx context.Context, d yard.Domain) (yard.Domain, error) {
			return c.Admin().PutDomain(ctx, d)
		},
		remove: func(c *yard.Client, ctx context.Context, name string, revision int64) (yard.Domain, error) {
			return c.Admin().DeleteDomain(ctx, name, revision)
		},
		all:         func(c *yard.Client, ctx context.Context) iter.Seq2[yard.Domain, error] { return c.Admin().Domains(ctx) },
		printStored: one, printOne: printDomain, printDeleted: one, printAll: printDomains,
	}
	return command.Group("domain", "Create, change, list and delete domains (tenants); pause and drain them; see their use", slices.Concat(s.commands(a), stoppableDomain.commands(a), []*cobra.Command{domainUsage(a)})...)
}

func printDomain(a *command.App, d yard.Domain) error {
	answer := gotten(d)
	return a.Show(answer, func(about *command.Table) {
		about.Row("domain", d.Name)
		about.Some("paused", pauseOf(answer.Pause))
		about.Some("drained", pauseOf(answer.Drain))
		about.Some("description", d.Description)
		about.Row("retention", d.Retention)
		about.Row("concurrency", command.OrDash(d.MaxConcurrency))
		about.Row("per group", command.OrDash(d.MaxConcurrencyPerGroup))
		about.Row("rate", rateText(d.Rate))
		about.Row("weight", max(1, d.Weight))
		about.Some("full weight", fullWeightText(d))
		about.Some("events", eventsText(d))
		about.Some("trace ratio", traceRatio(&d).Show())
		of := func(what string, used, most int64, when string) {
			if most > 0 {
				about.Row(what, used, fmt.Sprintf("of %d%s", most, when))
			}
		}
		of("submits", answer.Use.GetSubmitTasksPerS(), d.Quota.SubmitTasksPerSecond, " tasks in the last second")
		of("submitted", answer.Use.GetSubmitBytesPerS(), d.Quota.SubmitBytesPerSecond, " bytes in the last second")
		of("waiting", answer.Use.GetWaitingTasks(), d.Quota.WaitingTasks, " tasks")
		of("stored", answer.Use.GetStoredBytes(), d.Quota.StoredBytes, " bytes")
		of("open polls", int64(answer.Use.GetOpenPolls()), int64(d.Quota.OpenPolls), "")
		about.Row("dead letters", command.Or(d.DeadLettersMax, "all"), "are kept")
		about.Row("kept for", command.Or(d.DeadLettersMaxAge, "until they are redriven or purged"))
	})
}

// eventsText is which events a domain has; "" = none.
func eventsText(d yard.Domain) string {
	if !d.Events {
		return ""
	}
	text := "finished, dead"
	if d.LateAfter > 0 {
		text += fmt.Sprintf(", late after %v", d.LateAfter)
	}
	if d.StuckAfter > 0 {
		text += fmt.Sprintf(", stuck after %v", d.StuckAfter)
	}
	return text
}

// traceRatio is the share of a domain's traces on the command line; "default" leaves it to the services, and is shown as nothing.
func traceRatio(d *yard.Domain) command.Value {
	show := func() string {
		if d.TraceRatio == nil {
			return ""
		}
		return fmt.Sprint(*d.TraceRatio)
	}
	return command.Value{Kind: "float", Show: show, Parse: func(text string) error {
		if text == "" || text == "default" {
			d.TraceRatio = nil
			return nil
		}
		ratio, err := strconv.ParseFloat(text, 64)
		d.TraceRatio = &ratio
		return err
	}}
}

// fullWeightText is how many tasks come in with the full weight of a domain; "" = all.
func fullWeightText(d yard.Domain) string {
	switch {
	case d.FullWeightTasksPerSecond == 0:
		return ""
	case d.FullWeightShadow:
		return fmt.Sprintf("%d tasks in a second, in shadow", d.FullWeightTasksPerSecond)
	}
	return fmt.Sprintf("%d tasks in a second", d.FullWeightTasksPerSecond)
}

func printDomains(a *command.App, domains []yard.Domain) error {
	return a.Show(&yardv1.ListDomainsResponse{Domains: command.Each(domains, yard.Domain.Wire)}, func(t *command.Table) {
		t.Row("DOMAIN", "RETENTION", "DESCRIPTION", command.Wide{"CONCURRENCY", "PER GROUP", "RATE", "WEIGHT", "LETTERS", "LETTERS KEPT", "REVISION"})
		for _, d := range domains {
			t.Row(d.Name, command.OrDash(d.Retention), d.Description,
				command.Wide{command.OrDash(d.MaxConcurrency), command.OrDash(d.MaxConcurrencyPerGroup), rateText(d.Rate), max(1, d.Weight), command.Or(d.DeadLettersMax, "all"), command.OrDash(d.DeadLettersMaxAge), d.Revision})
		}
	})
}
