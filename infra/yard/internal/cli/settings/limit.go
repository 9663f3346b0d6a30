package settings

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// LimitCommand is `yard limit`.
func LimitCommand(a *command.App) *cobra.Command {
	one := func(a *command.App, l yard.Limit) error { return printLimits(a, []yard.Limit{l}) }
	s := settings[yard.Limit, yard.Limit]{
		kind: "limit", name: "partner-acme",
		putHelp: help{"Create or change a limit that several task types share", `Create a limit, or change the settings that are given as flags. It holds for all types that
name it (yard type put --shared-limit), together, and takes effect within a second. A smaller
limit stops no attempt: fewer start until enough have ended.

With --shadow it counts and holds nothing up: yard limit top tells how many attempts it would
have held up in the last hour. --shadow=false puts it in force.

With --on-full reject-newest a task is cancelled that has waited for a slot for --on-full-after;
with --on-full cancel-oldest the attempt is asked to stop that has held a slot for the longest,
of the same group where the limit is per group. --on-full wait has tasks wait again.`, `  yard limit put partner-acme --max-concurrency 30 --description "what acme's API takes"
  yard limit put partner-acme --rate 100/s
  yard limit put partners --max-concurrency-per-group 3 --description "calls of one partner's API"
  yard limit put partner-acme --max-concurrency 20 --shadow   # what would wait? see yard limit top
  yard limit put previews --max-concurrency-per-group 1 --on-full cancel-oldest   # only the newest of each customer
  yard type put payout.send --shared-limit partner-acme`},
		getHelp:  help{short: "Show a limit and how much of it is in use"},
		listHelp: help{short: "List the limits of the domain that task types share"},
		delete:   help{short: "Delete a limit that no task type names any more"},
		flags: func(flags *pflag.FlagSet, l *yard.Limit) {
			flags.StringVar(&l.Description, "description", l.Description, "for people")
			flags.IntVar(&l.MaxConcurrency, "max-concurrency", l.MaxConcurrency, "attempts of all its types that run at once in the domain, 1 to 1000000; 0 = any number; a new limit needs one of --max-concurrency, --max-concurrency-per-group and --rate")
			perGroup(flags, &l.MaxConcurrencyPerGroup)
			rateFlags(flags, &l.Rate)
			flags.BoolVar(&l.Shadow, "shadow", l.Shadow, "count what it would hold up, and hold nothing up; not with --max-concurrency-per-group")
			onFullFlags(flags, l)
		},
		complete: func(l *yard.Limit, name string) { l.Name = name },
		fetch:    (*yard.Client).GetLimit, store: (*yard.Client).PutLimit, remove: (*yard.Client).DeleteLimit, all: (*yard.Client).Limits,
		printStored: one, printOne: printLimit, printDeleted: one, printAll: printLimits,
	}
	return command.Group("limit", "Put, get, list and delete limits that several task types share, and see who holds any limit", append(s.commands(a), limitTop(a))...)
}

const perGroupFlag = "max-concurrency-per-group"

// perGroup is the flag of a limit that counts per group.
func perGroup(flags *pflag.FlagSet, n *int) {
	flags.IntVar(n, perGroupFlag, *n, "attempts of each group of tasks that run at once; 0 = no limit; a group may have its own number (yard group put)")
}

func printLimits(a *command.App, limits []yard.Limit) error {
	return a.Show(&yardv1.ListLimitsResponse{Limits: command.Each(limits, yard.Limit.Wire)}, func(t *command.Table) {
		t.Row("LIMIT", "CONCURRENCY", "PER GROUP", "RATE", "IN FORCE", "DESCRIPTION", command.Wide{"REVISION"})
		for _, l := range limits {
			t.Row(l.Name, command.OrDash(l.MaxConcurrency), command.OrDash(l.MaxConcurrencyPerGroup), rateText(l.Rate), inForce(l), l.Description, command.Wide{l.Revision})
		}
	})
}

func printLimit(a *command.App, l yard.Limit) error {
	return a.Show(&yardv1.GetLimitResponse{Limit: l.Wire(), SlotsInUse: int32(l.SlotsInUse)}, func(about *command.Table) {
		about.Row("limit", l.Name+" (domain "+a.Domain+")")
		about.Row("description", command.OrDash(l.Description))
		if l.MaxConcurrency > 0 {
			about.Row("concurrency", l.MaxConcurrency, "at once;", l.SlotsInUse, "now")
		}
		limitRows(about, l.MaxConcurrencyPerGroup, l.Rate)
		about.Row("in force", inForce(l))
	})
}

// limitRows shows the limits that few have.
func limitRows(about *command.Table, perGroup int, r yard.Rate) {
	if perGroup > 0 {
		about.Row("per group", perGroup, "at once")
	}
	if r.Tasks > 0 {
		about.Row("rate", rateText(r))
	}
}

// inForce tells whether a limit holds anything up.
func inForce(l yard.Limit) string {
	if l.Shadow {
		return "no, in shadow"
	}
	if text := onFullText(l); text != "" {
		return "yes; " + text
	}
	return "yes"
}
