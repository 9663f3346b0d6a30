package tasks

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// updateTasksMax is how many tasks one request may change.
const updateTasksMax = 100

// updateFlags is what `task update` takes.
type updateFlags struct {
	yard.Update
	retry   yard.RetryPolicy
	at      string
	headers []string
	payload string
}

func taskUpdate(a *command.App) *cobra.Command {
	var f updateFlags
	var where whereFlags
	cmd := &cobra.Command{
		Use: "update [TASK...]", Short: "Change tasks that have not started, or the deadline of one that runs",
		Long: `Change tasks: what is given, the rest stays as it is. Of a task that runs only --start-to-close, --finish-within
and the flags of the retry policy may change; its attempt then has --start-to-close from now on.

With --if-revision a task is changed only if it has that revision ("yard task get" shows it). --tasklist moves tasks to
another tasklist, where they wait for its workers and its limits.` + whereHelp,
		Example: `  yard task update 06gzvkw0fc003ewx4bxvk83r20 --priority 1 --run-now
  yard task update 06gzvkw0fc003ewx4bxvk83r20 --at 2026-12-24T18:00:00+01:00 --if-revision 2
  yard task update 06gzvkw0fc003ewx4bxvk83r20 --start-to-close 2h
  yard task update --where tasklist=mail --where type=email.send --tasklist spare --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := where.check(args, updateTasksMax); err != nil {
				return err
			}
			update, err := f.wire()
			if err != nil {
				return err
			}
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				if len(args) == 0 {
					return where.updateWhere(ctx, a, c, f.Update)
				}
				return changeTasks(ctx, a, c, args, update)
			})
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&f.IfRevision, "if-revision", 0, "only if it has this revision; 0 = any")
	flags.IntVarP(&f.Priority, "priority", "p", 0, "1 (most urgent) to 5")
	command.DurationVar(flags, &f.Delay, "delay", 0, "run it so long after now")
	flags.StringVar(&f.at, "at", "", "run it at this time, such as 2026-12-24T18:00:00+01:00")
	flags.BoolVar(&f.Now, "run-now", false, "run it at once")
	PolicyFlags(flags, &f.retry)
	command.DurationVar(flags, &f.StartToClose, "start-to-close", 0, "bound of one attempt; of the one that runs, from now on")
	command.DurationVar(flags, &f.HeartbeatTimeout, "heartbeat", 0, "silence after which an attempt is lost")
	command.DurationVar(flags, &f.StartWithin, "start-within", 0, "expire it unless it has begun by then")
	command.DurationVar(flags, &f.FinishWithin, "finish-within", 0, "expire it unless it is completed by then")
	flags.StringVar(&f.Group, "group", "", "its group")
	flags.StringVarP(&f.Tasklist, "tasklist", "t", "", "move it to this tasklist")
	flags.StringArrayVar(&f.headers, "header", nil, "a header as name=value, in place of all that it has; may be given several times")
	flags.StringVar(&f.payload, "payload", "", "the new input, a JSON value")
	where.add(flags, "with --where: "+command.YesUsage)
	return cmd
}

// wire is what the flags say, without a task.
func (f *updateFlags) wire() (*yardv1.TaskUpdate, error) {
	var err error
	if f.Headers, err = headersOf(f.headers); err != nil {
		return nil, err
	}
	if f.RunAt, err = command.ParseTime("at", f.at); err != nil {
		return nil, err
	}
	if f.payload != "" {
		if f.Payload, err = payloadOf(f.payload); err != nil {
			return nil, err
		}
	}
	if !NoPolicy(f.retry) {
		f.Retry = &f.retry
	}
	return f.Wire()
}

func taskRunNow(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "run-now TASK...", Short: "Run tasks at once that are delayed, or wait for the next attempt",
		Example: "  yard task run-now 06gzvkw0fc003ewx4bxvk83r20",
		Args:    command.ArgCount(1, updateTasksMax, "1 to 100 task ids"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			return changeTasks(ctx, a, c, args, &yardv1.TaskUpdate{RunNow: true})
		}),
	}
}

// changeTasks changes tasks alike.
func changeTasks(ctx context.Context, a *command.App, c *yard.Client, taskIDs []string, update *yardv1.TaskUpdate) error {
	req := &yardv1.UpdateRequest{}
	for _, id := range taskIDs {
		one := update.CloneVT()
		one.TaskId = id
		req.Tasks = append(req.Tasks, one)
	}
	verdicts, err := c.Wire().Update(ctx, req)
	if err != nil {
		return err
	}
	return printVerdicts(a, "changed", verdicts)
}
