package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func (a *app) typeCommand() *cobra.Command {
	s := settings[yard.TaskType, yard.TaskType]{
		kind: "type", name: "payout.send",
		putHelp: help{"Create or change a task type", `Create a task type, or change the settings that are given as flags. A changed limit
takes effect within a second; tasks accepted before keep their retry policy
and timeouts.`, `  yard type put payout.send --max-concurrency 15 --max-attempts 8 --initial-interval 2s
  yard type put payout.send --non-retryable card_stolen,account_closed --by-error busy:max-attempts=20,initial-interval=1m
  yard type put letter.post --heartbeat 5s --on-lost dead --on-timeout dead`},
		getHelp:  help{short: "Show a task type and how much of its limit is in use"},
		listHelp: help{short: "List the task types of the domain that have settings"},
		delete: help{short: "Delete the settings of a task type; its tasks continue without them", long: `Delete the settings of a task type. Its limit ends within a second. Tasks of
this type may still be submitted, with the default policy; those accepted before keep theirs.`},
		flags: typeFlags,
		complete: func(t *yard.TaskType, name string) {
			if t.Name = name; noPolicy(*t.Retry) {
				t.Retry = nil
			}
		},
		fetch: (*yard.Client).GetType, store: (*yard.Client).PutType, remove: (*yard.Client).DeleteType, all: (*yard.Client).Types,
		printStored: a.printType, printOne: a.printType, printAll: a.printTypes,
		printDeleted: func(t yard.TaskType) error { return a.printTypes([]yard.TaskType{t}) },
	}
	commands := s.commands(a)
	_ = commands[0].RegisterFlagCompletionFunc("limit", a.complete(limitNames)) // it refuses flags that there are none of
	return group("type", "Put, get, list, delete, pause, drain and purge task types: retry, timeouts, concurrency limits",
		slices.Concat(commands, stoppableType.commands(a), []*cobra.Command{a.typePurge()})...)
}

func typeFlags(flags *pflag.FlagSet, t *yard.TaskType) {
	flags.IntVar(&t.MaxConcurrency, "max-concurrency", t.MaxConcurrency, "attempts that run at once in the domain; 0 = no limit")
	perGroup(flags, &t.MaxConcurrencyPerGroup)
	rateFlags(flags, &t.Rate)
	flags.IntVar(&t.Cost, "cost", t.Cost, "starts of a rate that each attempt uses, 1 to 1000, of tasks that do not say it; 0 = 1")
	flags.StringSliceVar(&t.Limits, "limit", t.Limits, "limit that it shares with other types, see yard limit; may be repeated; replaces those it has, \"\" = none")
	durationVar(flags, &t.StartToClose, "start-to-close", t.StartToClose, "longest time of one attempt; default 5m")
	durationVar(flags, &t.HeartbeatTimeout, "heartbeat", t.HeartbeatTimeout, "time without a heartbeat after which an attempt is lost; 0 = never")
	durationVar(flags, &t.StartWithin, "start-within", t.StartWithin, "a task that has not started by then expires; 0 = never")
	durationVar(flags, &t.FinishWithin, "finish-within", t.FinishWithin, "a task that is not completed by then expires; 0 = never")
	if t.Retry == nil {
		t.Retry = &yard.RetryPolicy{}
	}
	policyFlags(flags, t.Retry)
}

// printTypes prints a line each: what is the default is left out.
func (a *app) printTypes(types []yard.TaskType) error {
	return a.show(&yardv1.ListTypesResponse{Types: each(types, yard.TaskType.Wire)}, func(t *table) {
		t.row("TYPE", "CONCURRENCY", "START TO CLOSE", "HEARTBEAT", "ATTEMPTS",
			wide{"START WITHIN", "FINISH WITHIN", "FIRST WAIT", "BACKOFF", "LONGEST WAIT", "PER GROUP", "RATE", "COST", "LIMITS", "REVISION"})
		for _, one := range types {
			retry := cmp.Or(one.Retry, &yard.RetryPolicy{})
			t.row(one.Name, orDash(one.MaxConcurrency), orDash(one.StartToClose), orDash(one.HeartbeatTimeout), orDash(retry.MaxAttempts),
				wide{orDash(one.StartWithin), orDash(one.FinishWithin), orDash(retry.InitialInterval), orDash(retry.Backoff), orDash(retry.MaxInterval),
					orDash(one.MaxConcurrencyPerGroup), rateText(one.Rate), orDash(one.Cost), orDash(strings.Join(one.Limits, ", ")), one.Revision})
		}
	})
}

func (a *app) printType(t yard.TaskType) error {
	answer := &yardv1.GetTypeResponse{Type: t.Wire(), SlotsInUse: int32(t.SlotsInUse), Pause: t.Pause.Wire(), Drain: t.Drain.Wire()}
	return a.show(answer, func(about *table) {
		about.row("type", t.Name+" (domain "+a.domain+")")
		about.some("paused", pauseOf(answer.Pause))
		about.some("drained", pauseOf(answer.Drain))
		if t.MaxConcurrency > 0 {
			about.row("concurrency", t.MaxConcurrency, "at once;", t.SlotsInUse, "now")
		} else {
			about.row("concurrency", "no limit")
		}
		limitRows(about, t.MaxConcurrencyPerGroup, t.Rate)
		if t.Cost > 1 {
			about.row("cost", t.Cost, "starts of a rate each")
		}
		about.row("shared limits", or(strings.Join(t.Limits, ", "), "none"))
		about.row("start to close", or(t.StartToClose, "5m0s, the default"))
		about.row("heartbeat", or(t.HeartbeatTimeout, "not needed"))
		about.row("start within", or(t.StartWithin, "no limit"))
		about.row("finish within", or(t.FinishWithin, "no limit"))
		policyRows(about, *cmp.Or(t.Retry, &yard.RetryPolicy{}))
	})
}
