package tasks

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// BatchCommand is `yard batch`.
func BatchCommand(a *command.App) *cobra.Command {
	return command.Group("batch", "Batches: know when a set of tasks has finished", batchCreate(a), batchList(a), batchCancel(a),
		batchVerb(a, "get", "Show a batch: how many of its tasks have ended, and how", (*yard.Batch).Info),
		batchVerb(a, "close", "Close a batch: it gets no more tasks, and completes when all have ended", (*yard.Batch).Close),
		batchVerb(a, "wait", "Wait until a batch is over; ctrl-C ends the wait", (*yard.Batch).Wait))
}

func batchCreate(a *command.App) *cobra.Command {
	var o yard.BatchOptions
	var callback yard.Task
	cmd := &cobra.Command{
		Use: "create ID", Short: "Create a batch, to which tasks are then submitted",
		Example: "  yard batch create import-7 --callback import.done -t imports\n  yard task submit row -t imports --batch import-7\n  yard batch close import-7",
		Args:    command.ArgCount(1, 1, "one batch"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			if callback.Type != "" {
				o.Callback = &callback
			}
			b, err := c.NewBatch(ctx, args[0], o)
			if err != nil {
				return err
			}
			info, err := b.Info(ctx)
			if err != nil {
				return err
			}
			return printBatches(a, []*yard.BatchInfo{info}, counted)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&callback.Type, "callback", "", "the type of the task that is submitted when the batch is completed")
	flags.StringVarP(&callback.Tasklist, "tasklist", "t", "", "the tasklist of that task")
	command.DurationVar(flags, &o.Expires, "expires", 0, "it expires after this time unless it is completed, 1m to 720h; default 720h")
	command.DurationVar(flags, &o.Keep, "keep", 0, "how long its counts are kept after its end, 1m to 720h; default 24h")
	return cmd
}

// batchVerb changes a batch, or waits for it, and shows it.
func batchVerb(a *command.App, verb, short string, do func(*yard.Batch, context.Context) (*yard.BatchInfo, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " ID", Short: short, Example: "  yard batch " + verb + " import-7", Args: command.ArgCount(1, 1, "one batch"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			info, err := do(c.Batch(args[0]), ctx)
			if err != nil {
				return err
			}
			return printBatches(a, []*yard.BatchInfo{info}, counted)
		}),
	}
}

func batchList(a *command.App) *cobra.Command {
	var states []string
	cmd := &cobra.Command{
		Use: "list", Short: "List the batches of the domain", Example: "  yard batch list --state open,closed", Args: command.NoArgs,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, _ []string) error {
			wanted := command.Each(states, func(name string) yard.BatchState { return yard.BatchState(name) })
			all, err := command.Gather(c.Batches(ctx, wanted...))
			if err != nil {
				return err
			}
			return printBatches(a, all)
		}),
	}
	cmd.Flags().StringSliceVar(&states, "state", nil, "only in these states: open, closed, completed, expired; default all of them")
	return cmd
}

func batchCancel(a *command.App) *cobra.Command {
	var o yard.PurgeOptions
	yes := false
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "Close a batch and cancel the rest of its tasks, or show it first",
		Long: `Close a batch and cancel the rest of its tasks, those that ACTIVE counts. It goes step by step, with progress; ctrl-C
ends it, and the same command again goes on. Without --yes the batch is only shown.`,
		Example: "  yard batch cancel import-7\n  yard batch cancel import-7 --reason \"wrong file\" --yes",
		Args:    command.ArgCount(1, 1, "one batch"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
					info, err := c.Batch(args[0]).Info(ctx)
					if err != nil {
						return err
					}
					return printBatches(a, []*yard.BatchInfo{info}, counted, preview)
				})
			}
			return runPurge(a, cmd, args[0], o, func(c *yard.Client, ctx context.Context, id string, o yard.PurgeOptions) (yard.Purged, error) {
				return c.Batch(id).Cancel(ctx, o)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Running, "running", false, "ask the workers of running tasks to stop, too")
	flags.BoolVar(&yes, "yes", false, command.YesUsage)
	flags.IntVar(&o.Rate, "rate", 500, "the most tasks to cancel a second")
	flags.StringVar(&o.Reason, "reason", "", "why, for people; it is in the history of each task")
	command.ByFlag(flags, &o.By, "cancels it")
	return cmd
}

// batchDetail is what printBatches shows beside the batches.
type batchDetail int

const (
	// counted: the batches that are not over have counts, too.
	counted batchDetail = iota
	// preview: nothing was done.
	preview
)

// printBatches prints batches as a table.
func printBatches(a *command.App, all []*yard.BatchInfo, with ...batchDetail) error {
	return a.Show(&yardv1.ListBatchesResponse{Batches: command.Each(all, (*yard.BatchInfo).Wire)}, func(t *command.Table) {
		t.Row("BATCH", "STATE", "TASKS", "ACTIVE", "COMPLETED", "DEAD", "CANCELLED", "EXPIRED", "CREATED", "CALLBACK")
		for _, b := range all {
			count := func(n int64) any {
				if !b.State.Over() && !slices.Contains(with, counted) {
					return "-"
				}
				return n
			}
			t.Row(command.OneLine(b.ID), b.State, count(b.Tasks), count(b.Active), count(b.Completed), count(b.Dead), count(b.Cancelled), count(b.Expired), command.At(b.CreatedAt.UnixMilli()), cmp.Or(b.CallbackID, b.CallbackType, "-"))
		}
		t.Preview(slices.Contains(with, preview))
	})
}
