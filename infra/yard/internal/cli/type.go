package cli

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func (a *app) typeCommand() *cobra.Command {
	return group("type", "Put, get, list, delete, pause, drain and purge task types: retry, timeouts, concurrency limits",
		a.typePut(), a.typeGet(), a.typeList(), a.typeDelete(), a.typePause(), a.typeDrain(), a.typeResume(), a.typePurge())
}

func (a *app) typePut() *cobra.Command {
	var t yard.TaskType
	var r yard.RetryPolicy
	cmd := &cobra.Command{
		Use: "put NAME", Short: "Create or change a task type",
		Long: `Create a task type, or change the settings that are given as flags. A changed limit
takes effect within a second; tasks accepted before keep their retry policy
and timeouts.`,
		Example: `  yard type put payout.send --max-concurrency 15 --max-attempts 8 --initial-interval 2s
  yard type put payout.send --non-retryable card_stolen,account_closed --by-error busy:max-attempts=20,initial-interval=1m
  yard type put letter.post --heartbeat 5s --on-lost dead --on-timeout dead`,
		Args: argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				have, err := c.GetType(ctx, args[0])
				if err != nil && !errors.Is(err, &fault.Error{Code: fault.NotFound}) {
					return err
				}
				have.Name = args[0]
				overlay(&have, t, r, cmd.Flags().Changed)
				stored, err := c.PutType(ctx, have)
				if err != nil {
					return err
				}
				return a.printType(stored)
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&t.MaxConcurrency, "max-concurrency", 0, "attempts that run at once in the domain; 0 = no limit")
	perGroup(flags, &t.MaxConcurrencyPerGroup)
	rateFlags(flags, &t.Rate)
	flags.IntVar(&t.Cost, "cost", 0, "starts of a rate that each attempt uses, 1 to 1000, of tasks that do not say it; 0 = 1")
	flags.StringSliceVar(&t.Limits, "limit", nil, "limit that it shares with other types, see yard limit; may be repeated; replaces those it has, \"\" = none")
	durationVar(flags, &t.StartToClose, "start-to-close", 0, "longest time of one attempt; default 5m")
	durationVar(flags, &t.HeartbeatTimeout, "heartbeat", 0, "time without a heartbeat after which an attempt is lost; 0 = never")
	durationVar(flags, &t.StartWithin, "start-within", 0, "a task that has not started by then expires; 0 = never")
	durationVar(flags, &t.FinishWithin, "finish-within", 0, "a task that is not completed by then expires; 0 = never")
	flags.IntVar(&r.MaxAttempts, "max-attempts", 0, "failures until a task is a dead letter; default 5")
	durationVar(flags, &r.InitialInterval, "initial-interval", 0, "wait after the first failure; default 1s")
	flags.Float64Var(&r.Backoff, "backoff", 0, "each further wait is so many times longer; default 2")
	durationVar(flags, &r.MaxInterval, "max-interval", 0, "longest wait; default 10m")
	ruleFlags(flags, &r)
	_ = cmd.RegisterFlagCompletionFunc("limit", a.complete(limitNames)) // it refuses flags that there are none of
	return cmd
}

// overlay puts the flags that were given on top of what the type has.
func overlay(have *yard.TaskType, t yard.TaskType, r yard.RetryPolicy, given func(string) bool) {
	retry := yard.RetryPolicy{}
	if have.Retry != nil {
		retry = *have.Retry
	}
	for name, set := range map[string]func(){
		"max-concurrency":  func() { have.MaxConcurrency = t.MaxConcurrency },
		perGroupFlag:       func() { have.MaxConcurrencyPerGroup = t.MaxConcurrencyPerGroup },
		"rate":             func() { have.Rate = t.Rate },
		"cost":             func() { have.Cost = t.Cost },
		"limit":            func() { have.Limits = t.Limits },
		"start-to-close":   func() { have.StartToClose = t.StartToClose },
		"heartbeat":        func() { have.HeartbeatTimeout = t.HeartbeatTimeout },
		"start-within":     func() { have.StartWithin = t.StartWithin },
		"finish-within":    func() { have.FinishWithin = t.FinishWithin },
		"max-attempts":     func() { retry.MaxAttempts = r.MaxAttempts },
		"initial-interval": func() { retry.InitialInterval = r.InitialInterval },
		"backoff":          func() { retry.Backoff = r.Backoff },
		"max-interval":     func() { retry.MaxInterval = r.MaxInterval },
	} {
		if given(name) {
			set()
		}
	}
	overlayRules(&retry, r, given)
	if !noPolicy(retry) {
		have.Retry = &retry
	}
}

func (a *app) typeGet() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a task type and how much of its limit is in use",
		Example: "  yard type get payout.send",
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				t, err := c.GetType(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printType(t)
			})
		},
	}
}

func (a *app) typeList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the task types of the domain that have settings",
		Example: "  yard type list",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				var all []yard.TaskType
				for t, err := range c.Types(ctx) {
					if err != nil {
						return err
					}
					all = append(all, t)
				}
				return a.printTypes(all)
			})
		},
	}
}

func (a *app) typeDelete() *cobra.Command {
	var revision int64
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete the settings of a task type; its tasks continue without them",
		Long: `Delete the settings of a task type. Its limit ends within a second. Tasks of
this type may still be submitted, with the default policy; those accepted before keep theirs.`,
		Example: "  yard type delete payout.send",
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				t, err := c.DeleteType(ctx, args[0], revision)
				if err != nil {
					return err
				}
				return a.printTypes([]yard.TaskType{t})
			})
		},
	}
	cmd.Flags().Int64Var(&revision, "revision", 0, "delete only this revision, as --output wide shows it; 0 = any")
	return cmd
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
