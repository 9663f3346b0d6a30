package tasks

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// TasklistPurge is `yard tasklist purge`.
func TasklistPurge(a *command.App) *cobra.Command {
	return purgeCommand(a, "tasklist", "mail --type email.send --older-than 24h", yard.OfTasklist, "type", "group")
}

// GroupPurge is `yard group purge`.
func GroupPurge(a *command.App) *cobra.Command {
	return purgeCommand(a, "group", "acme --tasklist bulk", yard.OfGroup, "tasklist", "type")
}

// TypePurge is `yard type purge`.
func TypePurge(a *command.App) *cobra.Command {
	return purgeCommand(a, "type", "payout.send --tasklist bulk", yard.OfType, "tasklist", "group")
}

// purgedStates are those of tasks that do not run.
var purgedStates = []string{"waiting", "ready", "backoff"}

type purge = func(*yard.Client, context.Context, string, yard.PurgeOptions) (yard.Purged, error)

// purgeCommand cancels, or counts, the tasks of a tasklist, a type or a group, which the flags of others narrow.
func purgeCommand(a *command.App, kind, example string, part func(name string) yard.Part, narrowing ...string) *cobra.Command {
	var o yard.PurgeOptions
	var states []string
	yes := false
	cmd := &cobra.Command{
		Use: "purge NAME", Short: "Cancel the tasks of a " + kind + " that do not run, or count them",
		Long: `Cancel the tasks of a ` + kind + ` that do not run: those that are ready, delayed, or wait for their
next attempt, and were created before the purge began. It goes step by step, with progress, until
none is left; ctrl-C ends it, and a second purge does no harm. Without --yes they are only counted.`,
		Example: "  yard " + kind + " purge " + example + "\n  yard " + kind + " purge " + example + ` --reason "sent twice" --yes`,
		Args:    command.ArgCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.States, err = statesOf(states, purgedStates); err != nil {
				return err
			}
			o.Preview = !yes
			return runPurge(a, cmd, args[0], o, func(c *yard.Client, ctx context.Context, name string, o yard.PurgeOptions) (yard.Purged, error) {
				return c.Purge(ctx, part(name), o)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&states, "state", nil, "only in these states: "+strings.Join(purgedStates, ", ")+"; default all of them")
	command.DurationVar(flags, &o.OlderThan, "older-than", 0, "only tasks created at least this long ago, up to 366 days")
	flags.BoolVar(&o.Running, "running", false, "ask the workers of running tasks to stop, too")
	flags.BoolVar(&yes, "yes", false, command.YesUsage)
	flags.IntVar(&o.Rate, "rate", 500, "the most tasks to cancel a second")
	flags.StringVar(&o.Reason, "reason", "", "why, for people; it is in the history of each task")
	command.ByFlag(flags, &o.By, "purges it")
	for _, name := range narrowing {
		short := map[string]string{"tasklist": "t"}[name]
		flags.StringVarP(map[string]*string{"tasklist": &o.Tasklist, "type": &o.Type, "group": &o.Group}[name], name, short, "", "only of this "+name)
	}
	return cmd
}

// runPurge shows with --json the sum of all steps, as the API would answer.
func runPurge(a *command.App, cmd *cobra.Command, name string, o yard.PurgeOptions, do purge) error {
	if err := command.CheckRate(o.Rate, "task"); err != nil {
		return err
	}
	return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
		r := a.Reporter("cancelled")
		o.Progress = func(p yard.Purged) { r.Step(p.Found, p.Cancelled) }
		p, err := do(c, ctx, name, o)
		if err != nil {
			return r.Given(err, p.Found, p.Cancelled)
		}
		sum := &yardv1.Purged{Found: p.Found, Cancelled: p.Cancelled, CancelRequested: p.CancelRequested, Ended: p.Ended, Undecided: p.Undecided, UnreadBatches: p.UnreadBatches}
		return a.Show(&yardv1.PurgeResponse{Purged: sum}, func(t *command.Table) {
			t.Row("FOUND", "CANCELLED", "ASKED TO STOP", "ENDED", "UNDECIDED")
			t.Row(p.Found, p.Cancelled, p.CancelRequested, p.Ended, p.Undecided)
			if p.UnreadBatches > 0 {
				t.Row(fmt.Sprintf("%d batches of tasks are on disk only and were not searched; some may be of it", p.UnreadBatches))
			}
			t.Preview(o.Preview)
		})
	})
}
