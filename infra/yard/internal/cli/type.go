package cli

import (
	"cmp"
	"slices"
	"strconv"
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
		slices.Concat(commands, a.stopCommands(typePart), []*cobra.Command{a.purgeCommand(typePart, "payout.send --tasklist bulk")})...)
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
	if a.json {
		list := &yardv1.ListTypesResponse{}
		for _, t := range types {
			list.Types = append(list.Types, wireType(t))
		}
		return a.printJSON(list)
	}
	var t table
	t.row(a.more([]any{"TYPE", "CONCURRENCY", "START TO CLOSE", "HEARTBEAT", "ATTEMPTS"}, "START WITHIN", "FINISH WITHIN", "FIRST WAIT", "BACKOFF", "LONGEST WAIT", "PER GROUP", "RATE", "COST", "LIMITS", "REVISION")...)
	for _, one := range types {
		retry := yard.RetryPolicy{}
		if one.Retry != nil {
			retry = *one.Retry
		}
		t.row(a.more([]any{one.Name, number(float64(one.MaxConcurrency), "-"), span(one.StartToClose), span(one.HeartbeatTimeout), number(float64(retry.MaxAttempts), "-")},
			span(one.StartWithin), span(one.FinishWithin), span(retry.InitialInterval), number(retry.Backoff, "-"), span(retry.MaxInterval), number(float64(one.MaxConcurrencyPerGroup), "-"), rateText(one.Rate), number(float64(one.Cost), "-"), limitsOf(one), one.Revision)...)
	}
	return a.printTable(&t)
}

// wireType is a type as the API writes it.
func wireType(t yard.TaskType) *yardv1.TaskType {
	return &yardv1.TaskType{
		Name: t.Name, StartToCloseMs: t.StartToClose.Milliseconds(), HeartbeatTimeoutMs: t.HeartbeatTimeout.Milliseconds(),
		MaxConcurrency: int32(t.MaxConcurrency), MaxConcurrencyPerGroup: int32(t.MaxConcurrencyPerGroup), Rate: wireRate(t.Rate), Cost: int32(t.Cost), Limits: t.Limits, Revision: t.Revision,
		StartWithinMs: t.StartWithin.Milliseconds(), FinishWithinMs: t.FinishWithin.Milliseconds(), Retry: wirePolicy(t.Retry),
	}
}

func (a *app) printType(t yard.TaskType) error {
	if a.json {
		return a.printJSON(&yardv1.GetTypeResponse{Type: wireType(t), SlotsInUse: int32(t.SlotsInUse), Pause: wirePause(t.Pause), Drain: wirePause(t.Drain)})
	}
	var about table
	about.row("type", t.Name+" (domain "+a.domain+")")
	if t.Pause != nil {
		about.row("paused", pauseOf(wirePause(t.Pause)))
	}
	if t.Drain != nil {
		about.row("drained", pauseOf(wirePause(t.Drain)))
	}
	if t.MaxConcurrency > 0 {
		about.row("concurrency", t.MaxConcurrency, "at once;", t.SlotsInUse, "now")
	} else {
		about.row("concurrency", "no limit")
	}
	if t.MaxConcurrencyPerGroup > 0 {
		about.row("per group", t.MaxConcurrencyPerGroup, "at once")
	}
	if t.Rate.Tasks > 0 {
		about.row("rate", rateText(t.Rate))
	}
	if t.Cost > 1 {
		about.row("cost", t.Cost, "starts of a rate each")
	}
	about.row("shared limits", or(limitsOf(t), "none"))
	about.row("start to close", or(span(t.StartToClose), "5m0s, the default"))
	about.row("heartbeat", or(span(t.HeartbeatTimeout), "not needed"))
	about.row("start within", or(span(t.StartWithin), "no limit"))
	about.row("finish within", or(span(t.FinishWithin), "no limit"))
	retry := yard.RetryPolicy{}
	if t.Retry != nil {
		retry = *t.Retry
	}
	policyRows(&about, retry)
	return a.printTable(&about)
}

// limitsOf are the limits that a type shares, or "-".
func limitsOf(t yard.TaskType) string { return cmp.Or(strings.Join(t.Limits, ", "), "-") }

// or is text, or what stands for none.
func or(text, none string) string {
	if text == "-" {
		return none
	}
	return text
}

// number is n, or what stands for 0.
func number(n float64, none string) string {
	if n == 0 {
		return none
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}
