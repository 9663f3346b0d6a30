package settings

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/tasks"
)

// TypeCommand is `yard type`.
func TypeCommand(a *command.App) *cobra.Command {
	s := settings[yard.TaskType, yard.TaskType]{
		kind: "type", name: "payout.send",
		putHelp: help{"Create or change a task type", `Create a task type, or change the settings that are given as flags. A changed limit
takes effect within a second. So do the retry policy, --start-to-close and
--heartbeat, also for attempts of tasks that were accepted before; tasks that
set a field themselves keep it. Tasks accepted before keep --start-within,
--finish-within and --cost.`, `  yard type put payout.send --max-concurrency 15 --max-attempts 8 --initial-interval 2s
  yard type put payout.send --non-retryable card_stolen,account_closed --by-error busy:max-attempts=20,initial-interval=1m
  yard type put letter.post --heartbeat 5s --on-lost dead --on-timeout dead`},
		getHelp:  help{short: "Show a task type and how much of its limit is in use"},
		listHelp: help{short: "List the task types of the domain that have settings"},
		delete: help{short: "Delete the settings of a task type; its tasks continue without them", long: `Delete the settings of a task type. Its limit ends within a second. Tasks of
this type may still be submitted, with the default policy; those accepted before keep the settings that they last had.`},
		flags: typeFlags,
		complete: func(t *yard.TaskType, name string) {
			if t.Name = name; tasks.NoPolicy(*t.Retry) {
				t.Retry = nil
			}
		},
		fetch: (*yard.Client).GetType, store: (*yard.Client).PutType, remove: (*yard.Client).DeleteType, all: (*yard.Client).Types,
		printStored: printType, printOne: printType, printAll: printTypes,
		printDeleted: func(a *command.App, t yard.TaskType) error { return printTypes(a, []yard.TaskType{t}) },
	}
	return command.Group("type", "Put, get, list, delete, pause, drain and purge task types: retry, timeouts, concurrency limits",
		slices.Concat(s.commands(a), stoppableType.commands(a), []*cobra.Command{tasks.TypePurge(a)})...)
}

func typeFlags(flags *pflag.FlagSet, t *yard.TaskType) {
	flags.IntVar(&t.MaxConcurrency, "max-concurrency", t.MaxConcurrency, "attempts that run at once in the domain; 0 = no limit")
	perGroup(flags, &t.MaxConcurrencyPerGroup)
	rateFlags(flags, &t.Rate)
	flags.IntVar(&t.Cost, "cost", t.Cost, "starts of a rate that each attempt uses, 1 to 1000, of tasks that do not say it; 0 = 1")
	flags.StringSliceVar(&t.Limits, "shared-limit", t.Limits, "limit that it shares with other types, see yard limit; may be repeated; replaces those it has, \"\" = none")
	command.DurationVar(flags, &t.StartToClose, "start-to-close", t.StartToClose, "longest time of one attempt; default 5m")
	command.DurationVar(flags, &t.HeartbeatTimeout, "heartbeat", t.HeartbeatTimeout, "time without a heartbeat after which an attempt is lost; 0 = never")
	command.DurationVar(flags, &t.StartWithin, "start-within", t.StartWithin, "a task that has not started by then expires; 0 = never")
	command.DurationVar(flags, &t.FinishWithin, "finish-within", t.FinishWithin, "a task that is not completed by then expires; 0 = never")
	command.DurationVar(flags, &t.CompletedRetention, "completed-retention", t.CompletedRetention, "how long completed tasks are kept, 15m to 8784h; 0 = as the domain says")
	command.DurationVar(flags, &t.StuckAfter, "stuck-after", t.StuckAfter, "list an attempt as stuck that runs for so long, 1s to 8784h, see yard task stuck; 0 = as the domain says")
	if t.Retry == nil {
		t.Retry = &yard.RetryPolicy{}
	}
	tasks.PolicyFlags(flags, t.Retry)
}

// printTypes prints a line each: what is the default is left out.
func printTypes(a *command.App, types []yard.TaskType) error {
	return a.Show(&yardv1.ListTypesResponse{Types: command.Each(types, yard.TaskType.Wire)}, func(t *command.Table) {
		t.Row("TYPE", "CONCURRENCY", "START TO CLOSE", "HEARTBEAT", "ATTEMPTS",
			command.Wide{"START WITHIN", "FINISH WITHIN", "FIRST WAIT", "BACKOFF", "LONGEST WAIT", "PER GROUP", "RATE", "COST", "LIMITS", "REVISION"})
		for _, one := range types {
			retry := cmp.Or(one.Retry, &yard.RetryPolicy{})
			t.Row(one.Name, command.OrDash(one.MaxConcurrency), command.OrDash(one.StartToClose), command.OrDash(one.HeartbeatTimeout), command.OrDash(retry.MaxAttempts),
				command.Wide{
					command.OrDash(one.StartWithin), command.OrDash(one.FinishWithin), command.OrDash(retry.InitialInterval), command.OrDash(retry.Backoff), command.OrDash(retry.MaxInterval),
					command.OrDash(one.MaxConcurrencyPerGroup), rateText(one.Rate), command.OrDash(one.Cost), command.OrDash(strings.Join(one.Limits, ", ")), one.Revision,
				})
		}
	})
}

func printType(a *command.App, t yard.TaskType) error {
	answer := &yardv1.GetTypeResponse{Type: t.Wire(), SlotsInUse: int32(t.SlotsInUse), Pause: t.Pause.Wire(), Drain: t.Drain.Wire()}
	return a.Show(answer, func(about *command.Table) {
		about.Row("type", t.Name+" (domain "+a.Domain+")")
		about.Some("paused", pauseOf(answer.Pause))
		about.Some("drained", pauseOf(answer.Drain))
		if t.MaxConcurrency > 0 {
			about.Row("concurrency", t.MaxConcurrency, "at once;", t.SlotsInUse, "now")
		} else {
			about.Row("concurrency", "no limit")
		}
		limitRows(about, t.MaxConcurrencyPerGroup, t.Rate)
		if t.Cost > 1 {
			about.Row("cost", t.Cost, "starts of a rate each")
		}
		about.Row("shared limits", command.Or(strings.Join(t.Limits, ", "), "none"))
		about.Row("start to close", command.Or(t.StartToClose, "5m0s, the default"))
		about.Row("heartbeat", command.Or(t.HeartbeatTimeout, "not needed"))
		about.Row("start within", command.Or(t.StartWithin, "no limit"))
		about.Row("finish within", command.Or(t.FinishWithin, "no limit"))
		if t.StuckAfter > 0 {
			about.Row("stuck after", t.StuckAfter)
		}
		if t.CompletedRetention > 0 {
			about.Row("completed tasks", "kept for", t.CompletedRetention)
		}
		tasks.PolicyRows(about, *cmp.Or(t.Retry, &yard.RetryPolicy{}))
	})
}
