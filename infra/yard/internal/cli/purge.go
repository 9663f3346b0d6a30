package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// purgedStates are those of tasks that do not run.
var purgedStates = []string{"waiting", "ready", "backoff"}

// purgeCommand cancels, or counts, the tasks of a tasklist, a type or a group. What it answers with --json is the API's, as the sum of all steps.
func (a *app) purgeCommand(of part, example string) *cobra.Command {
	var o yard.PurgeOptions
	var states []string
	kind := of.kind
	yes := false
	cmd := &cobra.Command{
		Use: "purge NAME", Short: "Cancel the tasks of a " + kind + " that do not run, or count them",
		Long: `Cancel the tasks of a ` + kind + ` that do not run: those that are ready, delayed, or wait for their
next attempt, and were created before the purge began. It goes step by step, with progress, until
none is left; ctrl-C ends it, and a second purge does no harm. Without --yes they are only counted.`,
		Example: "  yard " + kind + " purge " + example + "\n  yard " + kind + " purge " + example + ` --reason "sent twice" --yes`,
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.States, err = statesOf(states, purgedStates); err != nil {
				return err
			}
			if o.Rate < 1 {
				return usagef("--rate %d: want at least one task a second", o.Rate)
			}
			o.Preview = !yes
			if !cmd.Flags().Changed("by") {
				o.By = userName()
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				purge := func(c *yard.Client, ctx context.Context, name string, o yard.PurgeOptions) (yard.Purged, error) {
					return c.Purge(ctx, of.of(name), o)
				}
				return a.purge(ctx, c, args[0], o, purge, func(p *yardv1.Purged) codec.Message { return &yardv1.PurgeResponse{Purged: p} })
			})
		},
	}
	flags := cmd.Flags()
	if kind != tasklistPart.kind {
		flags.StringVarP(&o.Tasklist, "tasklist", "t", "", "only of this tasklist")
	}
	if kind != typePart.kind {
		flags.StringVar(&o.Type, "type", "", "only of this type")
	}
	if kind != groupPart.kind {
		flags.StringVar(&o.Group, "group", "", "only of this group")
	}
	flags.StringSliceVar(&states, "state", nil, "only in these states: "+strings.Join(purgedStates, ", ")+"; default all of them")
	durationVar(flags, &o.OlderThan, "older-than", 0, "only tasks created at least this long ago, up to 366 days")
	flags.BoolVar(&o.Running, "running", false, "ask the workers of running tasks to stop, too")
	flags.BoolVar(&yes, "yes", false, yesUsage)
	flags.IntVar(&o.Rate, "rate", 500, "the most tasks to cancel a second")
	flags.StringVar(&o.Reason, "reason", "", "why, for people; it is in the history of each task")
	flags.StringVar(&o.By, "by", "", "who purges it, for people; default the user of this system")
	return cmd
}

// purgeReportEvery is how often a purge says how far it is.
const purgeReportEvery = 2 * time.Second

func (a *app) purge(ctx context.Context, c *yard.Client, name string, o yard.PurgeOptions, purge func(*yard.Client, context.Context, string, yard.PurgeOptions) (yard.Purged, error), answer func(*yardv1.Purged) codec.Message) error {
	last := time.Now()
	o.Progress = func(p yard.Purged) {
		if time.Since(last) >= purgeReportEvery {
			last = time.Now()
			fmt.Fprintf(a.Err, "%d found, %d cancelled\n", p.Found, p.Cancelled)
		}
	}
	p, err := purge(c, ctx, name, o)
	if err != nil {
		if p.Found > 0 {
			fmt.Fprintf(a.Err, "%d found, %d cancelled, and it is not over\n", p.Found, p.Cancelled)
		}
		return err
	}
	if a.json {
		return a.printJSON(answer(&yardv1.Purged{
			Found: p.Found, Cancelled: p.Cancelled, CancelRequested: p.CancelRequested, Ended: p.Ended, Undecided: p.Undecided, UnreadBatches: p.UnreadBatches,
		}))
	}
	var t table
	t.row("FOUND", "CANCELLED", "ASKED TO STOP", "ENDED", "UNDECIDED")
	t.row(p.Found, p.Cancelled, p.CancelRequested, p.Ended, p.Undecided)
	err = a.printTable(&t)
	if err == nil && p.UnreadBatches > 0 {
		_, err = fmt.Fprintf(a.Out, "%d batches of tasks are on disk only and were not searched; some may be of it\n", p.UnreadBatches)
	}
	if err == nil && o.Preview {
		_, err = fmt.Fprintln(a.Out, notDone)
	}
	return err
}
