package settings

import (
	"context"
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
disk only is said, too. Limits and pauses may hold up a task that others overtake.`,
		Example: "  yard tasklist peek mail --type email.send --limit 20",
		Args:    command.ArgCount(1, 1, "one tasklist"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			req.Name = args[0]
			p, err := c.Wire().PeekTasklist(ctx, &req)
			if err != nil {
				return err
			}
			return printPeek(a, p)
		}),
	}
	cmd.Flags().StringVar(&req.Type, "type", "", "only of this type")
	cmd.Flags().StringVar(&req.Group, "group", "", "only of this group")
	cmd.Flags().Int32Var(&req.Limit, "limit", 10, "the most tasks to show, 1 to 100")
	cmd.Flags().StringVar(&req.Cursor, "cursor", "", "go on behind an answer with --json: its next_cursor")
	return cmd
}

func printPeek(a *command.App, p *yardv1.PeekTasklistResponse) error {
	return a.Show(p, func(t *command.Table) {
		t.Row("TASK", "PRIO", "READY FOR", "TYPE", "FAILURES", "CREATED")
		for _, next := range p.Tasks {
			task := next.Task
			t.Row(task.TaskId, task.Priority, time.Duration(next.ReadyForMs)*time.Millisecond, task.Type, task.Failures, command.At(task.CreatedAtMs))
		}
		if p.NextCursor != "" {
			t.Row("there are more")
		}
		unread(t, p.UnreadBatches)
	})
}
