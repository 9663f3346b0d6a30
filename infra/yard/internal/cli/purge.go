package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func (a *app) tasklistPurge() *cobra.Command {
	return a.purgeCommand(stoppableTasklist, "mail --type email.send --older-than 24h", "type", "group")
}

func (a *app) groupPurge() *cobra.Command {
	return a.purgeCommand(stoppableGroup, "acme --tasklist bulk", "tasklist", "type")
}

func (a *app) typePurge() *cobra.Command {
	return a.purgeCommand(stoppableType, "payout.send --tasklist bulk", "tasklist", "group")
}

// purgedStates are those of tasks that do not run.
var purgedStates = []string{"waiting", "ready", "backoff"}

type purge = func(*yard.Client, context.Context, string, yard.PurgeOptions) (yard.Purged, error)

// purgeCommand cancels, or counts, the tasks of a tasklist, a type or a group, which the flags of others narrow.
func (a *app) purgeCommand(of stoppable, example string, narrowing ...string) *cobra.Command {
	kind := of.kind
	var o yard.PurgeOptions
	var states []string
	yes := false
	cmd := &cobra.Command{
		Use: "purge NAME", Short: "Cancel the tasks of a " + kind + " that do not run, or count them",
		Long: `Cancel the tasks of a ` + kind + ` that do not run: those that are ready, delayed, or wait for their
next attempt, and were created before the purge began. It goes step by step, with progress, until
none is left; ctrl-C ends it, and a second purge does no harm. Without --yes they are only counted.`,
		Example: "  yard " + kind + " purge " + example + "\n  yard " + kind + " purge " + example + ` --reason "sent twice" --yes`,
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.States, err = statesOf(states, purgedStates); err != nil {
				return err
			}
			o.Preview = !yes
			return a.purge(cmd, args[0], o, func(c *yard.Client, ctx context.Context, name string, o yard.PurgeOptions) (yard.Purged, error) {
				return c.Purge(ctx, of.part(name), o)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&states, "state", nil, "only in these states: "+strings.Join(purgedStates, ", ")+"; default all of them")
	durationVar(flags, &o.OlderThan, "older-than", 0, "only tasks created at least this long ago, up to 366 days")
	flags.BoolVar(&o.Running, "running", false, "ask the workers of running tasks to stop, too")
	flags.BoolVar(&yes, "yes", false, yesUsage)
	flags.IntVar(&o.Rate, "rate", 500, "the most tasks to cancel a second")
	flags.StringVar(&o.Reason, "reason", "", "why, for people; it is in the history of each task")
	byFlag(flags, &o.By, "purges it")
	for _, name := range narrowing {
		short := map[string]string{"tasklist": "t"}[name]
		flags.StringVarP(map[string]*string{"tasklist": &o.Tasklist, "type": &o.Type, "group": &o.Group}[name], name, short, "", "only of this "+name)
	}
	return cmd
}

// purgeReportEvery is how often a purge says how far it is.
const purgeReportEvery = 2 * time.Second

// reporter says how far a command is that goes step by step.
type reporter struct {
	out  io.Writer
	done string
	last time.Time
}

func (a *app) reporter(done string) *reporter { return &reporter{a.Err, done, time.Now()} }

func (r *reporter) step(found, done int64) {
	if time.Since(r.last) >= purgeReportEvery {
		r.last = time.Now()
		fmt.Fprintf(r.out, "%d found, %d %s\n", found, done, r.done)
	}
}

// given returns the error that ended it, and says how far it was.
func (r *reporter) given(err error, found, done int64) error {
	if found > 0 {
		fmt.Fprintf(r.out, "%d found, %d %s, and it is not over\n", found, done, r.done)
	}
	return err
}

// checkRate refuses a rate at which nothing goes on.
func checkRate(rate int, of string) error {
	if rate < 1 {
		return usagef("--rate %d: want at least one %s a second", rate, of)
	}
	return nil
}

// purge shows with --json the sum of all steps, as the API would answer.
func (a *app) purge(cmd *cobra.Command, name string, o yard.PurgeOptions, do purge) error {
	if err := checkRate(o.Rate, "task"); err != nil {
		return err
	}
	return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
		r := a.reporter("cancelled")
		o.Progress = func(p yard.Purged) { r.step(p.Found, p.Cancelled) }
		p, err := do(c, ctx, name, o)
		if err != nil {
			return r.given(err, p.Found, p.Cancelled)
		}
		sum := &yardv1.Purged{Found: p.Found, Cancelled: p.Cancelled, CancelRequested: p.CancelRequested, Ended: p.Ended, Undecided: p.Undecided, UnreadBatches: p.UnreadBatches}
		return a.show(&yardv1.PurgeResponse{Purged: sum}, func(t *table) {
			t.row("FOUND", "CANCELLED", "ASKED TO STOP", "ENDED", "UNDECIDED")
			t.row(p.Found, p.Cancelled, p.CancelRequested, p.Ended, p.Undecided)
			if p.UnreadBatches > 0 {
				t.row(fmt.Sprintf("%d batches of tasks are on disk only and were not searched; some may be of it", p.UnreadBatches))
			}
			t.preview(o.Preview)
		})
	})
}

// preview says that nothing was done.
func (t *table) preview(is bool) {
	if is {
		t.row(notDone)
	}
}
