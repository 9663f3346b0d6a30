package cli

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func (a *app) batchCommand() *cobra.Command {
	return group("batch", "Batches: know when a set of tasks has finished", a.batchCreate(), a.batchList(), a.batchCancel(),
		a.batchVerb("get", "Show a batch: how many of its tasks have ended, and how", (*yard.Batch).Info),
		a.batchVerb("close", "Close a batch: it gets no more tasks, and completes when all have ended", (*yard.Batch).Close),
		a.batchVerb("wait", "Wait until a batch is over; ctrl-C ends the wait", (*yard.Batch).Wait))
}

func (a *app) batchCreate() *cobra.Command {
	var o yard.BatchOptions
	var callback yard.Task
	cmd := &cobra.Command{
		Use: "create ID", Short: "Create a batch, to which tasks are then submitted",
		Example: "  yard batch create import-7 --callback import.done -t imports\n  yard task submit row -t imports --batch import-7\n  yard batch close import-7",
		Args:    argCount(1, 1, "one batch"),
		RunE: a.client(func(ctx context.Context, c *yard.Client, args []string) error {
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
			return a.printBatches([]*yard.BatchInfo{info})
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&callback.Type, "callback", "", "the type of the task that is submitted when the batch is completed")
	flags.StringVarP(&callback.Tasklist, "tasklist", "t", "", "the tasklist of that task")
	durationVar(flags, &o.Expires, "expires", 0, "it expires after this time unless it is completed, 1m to 720h; default 720h")
	durationVar(flags, &o.Keep, "keep", 0, "how long its counts are kept after its end, 1m to 720h; default 24h")
	return cmd
}

// batchVerb changes a batch, or waits for it, and shows it.
func (a *app) batchVerb(verb, short string, do func(*yard.Batch, context.Context) (*yard.BatchInfo, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " ID", Short: short, Example: "  yard batch " + verb + " import-7", Args: argCount(1, 1, "one batch"),
		RunE: a.client(func(ctx context.Context, c *yard.Client, args []string) error {
			info, err := do(c.Batch(args[0]), ctx)
			if err != nil {
				return err
			}
			return a.printBatches([]*yard.BatchInfo{info})
		}),
	}
}

func (a *app) batchList() *cobra.Command {
	var states []string
	cmd := &cobra.Command{
		Use: "list", Short: "List the batches of the domain", Example: "  yard batch list --state open,closed", Args: noArgs,
		RunE: a.client(func(ctx context.Context, c *yard.Client, _ []string) error {
			wanted := each(states, func(name string) yard.BatchState { return yard.BatchState(name) })
			all, err := gather(c.Batches(ctx, wanted...))
			if err != nil {
				return err
			}
			return a.printBatches(all)
		}),
	}
	cmd.Flags().StringSliceVar(&states, "state", nil, "only in these states: open, closed, completed, expired; default all of them")
	return cmd
}

func (a *app) batchCancel() *cobra.Command {
	var o yard.PurgeOptions
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "Close a batch and cancel the rest of its tasks",
		Example: `  yard batch cancel import-7 --reason "wrong file"`,
		Args:    argCount(1, 1, "one batch"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.purge(cmd, args[0], o, func(c *yard.Client, ctx context.Context, id string, o yard.PurgeOptions) (yard.Purged, error) {
				return c.Batch(id).Cancel(ctx, o)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Running, "running", false, "ask the workers of running tasks to stop, too")
	flags.IntVar(&o.Rate, "rate", 500, "the most tasks to cancel a second")
	flags.StringVar(&o.Reason, "reason", "", "why, for people; it is in the history of each task")
	byFlag(flags, &o.By, "cancels it")
	return cmd
}

func (a *app) printBatches(all []*yard.BatchInfo) error {
	return a.show(&yardv1.ListBatchesResponse{Batches: each(all, (*yard.BatchInfo).Wire)}, func(t *table) {
		t.row("BATCH", "STATE", "TASKS", "ACTIVE", "COMPLETED", "DEAD", "CANCELLED", "EXPIRED", "CREATED", "CALLBACK")
		for _, b := range all {
			t.row(oneLine(b.ID), b.State, b.Tasks, b.Active, b.Completed, b.Dead, b.Cancelled, b.Expired, b.CreatedAt.Format(time.RFC3339), cmp.Or(b.CallbackID, b.CallbackType, "-"))
		}
	})
}
