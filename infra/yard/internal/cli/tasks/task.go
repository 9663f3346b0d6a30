// Package tasks has the commands for tasks, batches, order keys and dead letters.
package tasks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/timers"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	show "github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/timers"
)

// watchEvery is how often a watched task is asked for. Its history carries the
// exact times, so nothing is missed in between.
const watchEvery = 200 * time.Millisecond

// TaskCommand is `yard task`.
func TaskCommand(a *command.App) *cobra.Command {
	return command.Group("task", "Submit, look at, watch, change, cancel and end tasks",
		taskSubmit(a), taskGet(a), taskExplain(a), taskTrace(a), taskList(a), taskStuck(a), taskWatch(a), taskCancel(a), taskEnd(a), taskUpdate(a), taskRunNow(a))
}

func taskGet(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "get TASK", Short: "Show a task with its whole history",
		Example: "  yard task get 06gzvkw0fc003ewx4bxvk83r20",
		Args:    command.ArgCount(1, 1, "one task id"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			task, err := c.Wire().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return printTask(a, task, whyText(ctx, a, c, task))
		}),
	}
}

func taskList(a *command.App) *cobra.Command {
	var filter yardv1.ListRequest
	var states, headers []string
	var limit int
	var within time.Duration
	cmd := &cobra.Command{
		Use: "list", Short: "List tasks, newest first: waiting, active, and finished",
		Long: `List tasks, newest first: waiting, active, and finished. With --due-within only those that wait for their
time, the next due minute first, with their number by tasklist and type. The next runs of schedules are no
tasks yet: yard schedule list shows them.`,
		Example: `  yard task list --tasklist mail --state running,ready
  yard task list --header partner=acme --state dead
  yard task list --type email.send --limit 10 --json
  yard task list --due-within 1h`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if filter.States, err = statesOf(states, taskStates()); err != nil {
				return err
			}
			if filter.Headers, err = headersOf(headers); err != nil {
				return err
			}
			if limit < 0 {
				return command.Usagef("--limit %d: want a number of tasks, or 0 for all", limit)
			}
			filter.DueWithinMs = within.Milliseconds()
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				tasks, err := FirstTasks(ctx, c, &filter, limit)
				if err != nil {
					return err
				}
				var counts *timers.Counts
				if within > 0 && !a.JSON {
					counts, err = timers.Count(ctx, c, timers.Query{Tasklist: filter.Tasklist, Type: filter.Type, Within: within, Span: show.SpanFor(within)})
					if err != nil {
						return err
					}
				}
				return printTasks(a, tasks, counts)
			})
		},
	}
	cmd.Flags().StringVarP(&filter.Tasklist, "tasklist", "t", "", "only of this tasklist")
	cmd.Flags().StringVar(&filter.Type, "type", "", "only of this type")
	cmd.Flags().StringVar(&filter.Group, "group", "", "only of this group")
	cmd.Flags().StringVar(&filter.OrderKey, "order-key", "", "only with this order key")
	cmd.Flags().StringVar(&filter.BatchId, "batch", "", "only members of this batch")
	cmd.Flags().BoolVar(&filter.Blocked, "blocked", false, "only those that block their order key")
	cmd.Flags().StringSliceVar(&states, "state", nil, "only in these states: "+strings.Join(taskStates(), ", "))
	cmd.Flags().StringArrayVar(&headers, "header", nil, "only with this header, as name=value; up to 4 of them, all must match")
	command.DurationVar(cmd.Flags(), &within, "due-within", 0, "only those that wait and are due within this time, up to 366d")
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "the most tasks to list; 0 = all")
	return cmd
}

// taskStates are the names of all states.
func taskStates() (names []string) {
	for n := range yardv1.TaskState_name {
		if s := yardv1.TaskState(n); s != yardv1.TaskState_TASK_STATE_UNSPECIFIED {
			names = append(names, s.Name())
		}
	}
	slices.Sort(names)
	return names
}

// statesOf parses the values of a flag --state that takes some names.
func statesOf(values, names []string) (states []yardv1.TaskState, err error) {
	for _, name := range values {
		var s yardv1.TaskState
		if err := s.UnmarshalText([]byte(name)); err != nil || !slices.Contains(names, name) {
			return nil, command.Usagef("--state %s: want some of %s", name, strings.Join(names, ", "))
		}
		states = append(states, s)
	}
	return states, nil
}

// pageTasks is how many tasks one request brings at most.
const pageTasks = 1000

// FirstTasks are the newest tasks that match, as many as are wanted; 0 = all.
func FirstTasks(ctx context.Context, c *yard.Client, filter *yardv1.ListRequest, wanted int) ([]*yardv1.Task, error) {
	filter.Limit = pageTasks
	if wanted > 0 {
		filter.Limit = int32(min(wanted, pageTasks))
	}
	var tasks []*yardv1.Task
	for task, err := range c.Wire().Tasks(ctx, filter) {
		if err != nil {
			return nil, err
		}
		if tasks = append(tasks, task); len(tasks) == wanted {
			break
		}
	}
	return tasks, nil
}

// cancelTasksMax is how many tasks one request may cancel.
const cancelTasksMax = 1000

func taskCancel(a *command.App) *cobra.Command {
	var reason string
	var f whereFlags
	cmd := &cobra.Command{
		Use: "cancel [TASK...]", Short: "Cancel tasks: waiting ones at once, running ones at their worker's next heartbeat",
		Long: `Cancel tasks: waiting ones at once, running ones at their worker's next heartbeat. Without --yes they are only shown.` + whereHelp,
		Example: `  yard task cancel 06gzvkw0fc003ewx4bxvk83r20
  yard task cancel 06gzvkw0fc003ewx4bxvk83r20 --reason "ordered twice" --yes
  yard task cancel --where tasklist=mail --where header.campaign=spring --where older-than=1h
  yard task cancel --where tasklist=mail --where header.campaign=spring --rate 500 --yes`,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			if err := f.check(args, cancelTasksMax); err != nil {
				return err
			}
			if len(args) == 0 {
				return f.cancelWhere(ctx, a, c, reason)
			}
			if !f.yes {
				return showNamed(ctx, a, c, args)
			}
			verdicts, err := c.Wire().Cancel(ctx, &yardv1.CancelRequest{TaskIds: args, Reason: reason})
			if err != nil {
				return err
			}
			return printVerdicts(a, "cancelled", verdicts)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for people")
	f.add(cmd.Flags(), command.YesUsage)
	return cmd
}

// showNamed shows the tasks that a command would change.
func showNamed(ctx context.Context, a *command.App, c *yard.Client, taskIDs []string) error {
	all := &yardv1.ListResponse{}
	for _, id := range taskIDs {
		task, err := c.Wire().Get(ctx, id)
		if err != nil {
			return err
		}
		all.Tasks = append(all.Tasks, task)
	}
	return a.Show(all, func(t *command.Table) {
		t.Row("TASK", "TYPE", "TASKLIST", "STATE")
		for _, task := range all.Tasks {
			t.Row(task.TaskId, task.Type, task.Tasklist, task.State.Name())
		}
		t.Preview(true)
	})
}

// printVerdicts writes what became of each task; the error is that of the first
// one that was not done, such as "cancelled".
func printVerdicts(a *command.App, done string, verdicts []*yardv1.Verdict) error {
	var refused error
	err := a.Show(&yardv1.OutcomeResponse{Verdicts: verdicts}, func(t *command.Table) {
		t.Row("TASK", "VERDICT", "")
		for _, v := range verdicts {
			about := v.Message
			if about == "" && v.Revision > 0 {
				about = fmt.Sprint("revision ", v.Revision)
			}
			t.Row(v.TaskId, v.Code, about)
		}
	})
	for _, v := range verdicts {
		if v.Code != "OK" && refused == nil {
			refused = fault.New(fault.Code(v.Code), "task %s was not %s: %s", v.TaskId, done, v.Message)
		}
	}
	return cmp.Or(err, refused)
}

func taskWatch(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "watch TASK", Short: "Print what happens to a task until it is finished",
		Long: `Print the events of a task, from its start until it is finished, however long
that takes. The exit code is 0 if it completed, 3 if it is a dead letter or was
cancelled.`,
		Example: "  yard task watch 06gzvkw0fc003ewx4bxvk83r20",
		Args:    command.ArgCount(1, 1, "one task id"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			return watch(ctx, a, c, args[0])
		}),
	}
}

// watch prints the events of a task as they come, and its result at the end.
func watch(ctx context.Context, a *command.App, c *yard.Client, id string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_, _ = c.Wait(ctx, id) // whatever it says, the next look tells all
	}()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for seen := 0; ; {
		task, err := c.Wire().Get(ctx, id)
		if err != nil {
			return err
		}
		if err := printEvents(a, task, seen); err != nil {
			return err
		}
		seen = len(task.Events)
		if task.State.Finished() {
			return printEnd(a, task)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-finished:
			finished = nil // one look at once, then by the tick
		}
	}
}

// printEvents writes the events after the first seen ones.
func printEvents(a *command.App, task *yardv1.Task, seen int) error {
	for _, e := range task.Events[min(seen, len(task.Events)):] {
		if a.JSON {
			if err := a.PrintJSON(e); err != nil {
				return err
			}
			continue
		}
		cells := eventCells(e)
		text := strings.TrimRight(fmt.Sprintf("%s  %-16s %-3s %s  %s", cells...), " ")
		if _, err := fmt.Fprintln(a.Out, command.PlainLine(text)); err != nil {
			return err
		}
	}
	return nil
}

// printEnd writes how a finished task ended; dead and cancelled ones are an error.
func printEnd(a *command.App, task *yardv1.Task) error {
	if a.JSON {
		if err := a.PrintJSON(task); err != nil {
			return err
		}
	}
	if task.State != yardv1.TaskState_TASK_STATE_COMPLETED {
		return &yard.TaskError{
			TaskID: task.TaskId, State: yard.State(task.State.Name()), Message: task.ErrorMessage,
			ErrorType: task.ErrorType, Failures: int(task.Failures),
		}
	}
	if a.JSON {
		return nil
	}
	_, err := fmt.Fprintln(a.Out, "result:", command.Plain(payload(a, task.Result)))
	return err
}
