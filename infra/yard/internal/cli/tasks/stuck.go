package tasks

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/bulk"
	"github.com/yardmaster-io/yardmaster/contracts/yard/operate"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

func taskStuck(a *command.App) *cobra.Command {
	var q operate.StuckQuery
	cmd := &cobra.Command{
		Use: "stuck", Short: "List the tasks whose attempts run for too long, those that run for longest first",
		Long: `List the tasks whose attempts run for too long, those that run for longest first, with the worker and since
when. Without --than the time is --stuck-after of the type, then that of the domain, then a minute. "yard task end" ends
a task by hand, "yard task cancel" asks its worker to stop.`,
		Example: "  yard task stuck --than 10m\n  yard task stuck --tasklist mail --type email.send",
		Args:    command.NoArgs,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, _ []string) error {
			stuck, err := operate.Stuck(ctx, c, q)
			if err != nil {
				return err
			}
			return a.Show(stuck.Wire(), func(t *command.Table) {
				t.Row("TASK", "TYPE", "TASKLIST", "WORKER", "SINCE", "RUNS FOR", command.Wide{"STUCK AFTER", "ENDS BY", "ATTEMPT", "WORKER ID"})
				for _, s := range stuck.Tasks {
					t.Row(s.TaskID, s.Type, s.Tasklist, command.OrDash(s.Worker), command.At(s.Started.UnixMilli()), command.Lasting(s.RunningFor.Milliseconds()),
						command.Wide{s.StuckAfter, command.At(s.Deadline.UnixMilli()), s.Grants, command.OrDash(s.WorkerID)})
				}
				t.More(int(stuck.Found) > len(stuck.Tasks))
			})
		}),
	}
	flags := cmd.Flags()
	command.DurationVar(flags, &q.RunningFor, "than", 0, "attempts that run for longer than this, 1ms to 366d")
	flags.StringVarP(&q.Tasklist, "tasklist", "t", "", "only of this tasklist")
	flags.StringVar(&q.Type, "type", "", "only of this type")
	flags.IntVarP(&q.Limit, "limit", "n", 100, "the most tasks to list, 1 to 1000")
	return cmd
}

// endStates are the states in which a task can be ended by hand.
var endStates = []yard.State{yard.StateCompleted, yard.StateDead, yard.StateCancelled}

// endTasksMax is how many tasks one request may end.
const endTasksMax = 100

func taskEnd(a *command.App) *cobra.Command {
	var e operate.Ending
	var f whereFlags
	var state, result string
	cmd := &cobra.Command{
		Use: "end [TASK...]", Short: "End tasks by hand, at once: completed, dead or cancelled",
		Long: `End tasks by hand, at once, wherever they are in their lives. --as completed is as if a worker had completed them, with
--result. --as dead makes them dead letters. --as cancelled ends them without dead letters. The worker of a task
that runs is notified, and what it reports is refused; it may work on until it hears of it. "yard task cancel" leaves the
end of a running task to its worker. Without --yes they are only shown.` + whereHelp,
		Example: `  yard task end 06gzvkw0fc003ewx4bxvk83r20 --as dead --reason "the relay hangs" --yes
  yard task end 06gzvkw0fc003ewx4bxvk83r20 --as completed --result '{"sent":true}' --reason "sent by phone" --yes
  yard task end --where tasklist=old --where type=email.send --as dead --reason "no worker has this type" --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args, endTasksMax); err != nil {
				return err
			}
			if e.State = yard.State(state); !slices.Contains(endStates, e.State) {
				return command.Usagef("--as %q: want completed, dead or cancelled", state)
			}
			if result != "" {
				payload, err := payloadOf(result)
				if err != nil {
					return err
				}
				e.Result = json.RawMessage(payload)
			}
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				if len(args) == 0 {
					return f.run(a, "ended", func(o bulk.Options) (bulk.Done, error) { return bulk.End(ctx, c, e, o) })
				}
				if !f.yes {
					return showNamed(ctx, a, c, args)
				}
				verdicts, err := operate.EndVerdicts(ctx, c, e, args...)
				if err != nil {
					return err
				}
				return printVerdicts(a, "ended", verdicts)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&state, "as", "", "completed, dead or cancelled; required")
	flags.StringVar(&result, "result", "", "with --as completed, the output of a single task, a JSON value")
	flags.StringVar(&e.Reason, "reason", "", "the reason, for people; it is in the history of each task")
	command.ByFlag(flags, &e.By, "does it")
	f.add(flags, command.YesUsage)
	return cmd
}
