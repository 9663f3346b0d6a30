package settings

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

func tasklistPeek(a *command.App) *cobra.Command {
	var req yardv1.PeekTasklistRequest
	cmd := &cobra.Command{
		Use: "peek NAME", Short: "Show the tasks of a tasklist that start next; none is taken",
		Long: `Show the ready tasks of a tasklist in the order in which they are to start: by priority, then
the one that is ready for longest. None is taken. Only tasks in memory are seen; how much is on
disk only is said, too. Limits may hold up a task that others overtake; PAUSED says that a pause does.`,
		Example: "  yard tasklist peek mail --type email.send --limit 20",
		Args:    command.ArgCount(1, 1, "one tasklist"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			req.Name = args[0]
			p, err := c.Wire().PeekTasklist(ctx, &req)
			if err != nil {
				return err
			}
			var d *yardv1.DescribeTasklistResponse
			if !a.JSON && len(p.Tasks) > 0 {
				d, _ = c.Wire().DescribeTasklist(ctx, args[0]) // without it the pauses are not shown
			}
			return printPeek(a, p, d)
		}),
	}
	cmd.Flags().StringVar(&req.Type, "type", "", "only of this type")
	cmd.Flags().StringVar(&req.Group, "group", "", "only of this group")
	cmd.Flags().Int32VarP(&req.Limit, "limit", "n", 10, "the most tasks to show, 1 to 100")
	cmd.Flags().StringVar(&req.Cursor, "cursor", "", "go on behind an answer with --json: its next_cursor")
	return cmd
}

// printPeek prints the tasks, each with what of it is paused, if d is known.
func printPeek(a *command.App, p *yardv1.PeekTasklistResponse, d *yardv1.DescribeTasklistResponse) error {
	return a.Show(p, func(t *command.Table) {
		t.Row("TASK", "PRIO", "READY FOR", "TYPE", "FAILURES", "CREATED", "PAUSED")
		for _, next := range p.Tasks {
			task := next.Task
			t.Row(task.TaskId, task.Priority, time.Duration(next.ReadyForMs)*time.Millisecond, task.Type, task.Failures, command.At(task.CreatedAtMs), pausedBy(task, d))
		}
		if p.NextCursor != "" {
			t.Row("there are more")
		}
		unread(t, p.UnreadBatches)
	})
}

// pausedBy is what keeps a task from starting that is paused: its tasklist, its type or its group; "-" = nothing.
func pausedBy(task *yardv1.Task, d *yardv1.DescribeTasklistResponse) string {
	switch {
	case d.GetPause().GetWholeDomain():
		return "domain"
	case d.GetPause() != nil:
		return "tasklist"
	case slices.Contains(d.GetPausedTypes(), task.Type):
		return "type"
	case task.Group != "" && slices.Contains(d.GetPausedGroups(), task.Group):
		return "group"
	}
	return "-"
}
