package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/explain"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// whyWait is how long `yard task get` waits for the reasons: it shows the task without them, too.
const whyWait = 2 * time.Second

// getsNext is said of a task that nothing keeps waiting.
const getsNext = "Nothing keeps the task waiting: a worker gets it next."

func taskExplain(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "explain TASK", Short: "Say why a task does not start: all reasons at once",
		Long: `Say why a task does not start now. Each reason alone keeps it waiting. A reason that says ABOUT is a
snapshot: it may be over a moment later. Full limits are shown with the tasks that have had their slots for
the longest.`,
		Example: "  yard task explain 06gzvkw0fc003ewx4bxvk83r20",
		Args:    command.ArgCount(1, 1, "one task id"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			why, err := explain.Task(ctx, c, args[0])
			if err != nil {
				return err
			}
			return printReasons(a, why.Wire())
		}),
	}
}

func printReasons(a *command.App, why *yardv1.ExplainResponse) error {
	return a.Show(why, func(t *command.Table) {
		task := why.Task
		t.Row("task", task.TaskId)
		t.Row("state", task.State.Name())
		t.Row("type", task.Type)
		t.Row("tasklist", task.Tasklist+" (domain "+task.Domain+")")
		t.Row()
		if len(why.Reasons) == 0 {
			t.Row(getsNext)
			return
		}
		t.Row("REASON", "SINCE", "UNTIL", "BY", "ABOUT", "WHY")
		for _, r := range why.Reasons {
			about := "-"
			if r.About {
				about = "about"
			}
			t.Row(r.Code, command.At(r.SinceMs), command.At(r.UntilMs), command.OrDash(r.By), about, r.Text)
		}
		for _, r := range why.Reasons {
			if len(r.Limit.GetHolders()) == 0 {
				continue
			}
			t.Row()
			t.Row("SLOTS OF "+r.Ref, "WORKER", "STATE", command.Wide{"FOR"})
			for _, h := range r.Limit.Holders {
				t.Row(h.TaskId, command.OrDash(h.Worker), h.State.Name(), command.Wide{(time.Duration(h.HeldForMs) * time.Millisecond).Round(time.Second)})
			}
		}
	})
}

// whyText is why a task waits, in a line; empty if it does not wait, or that is not known.
func whyText(ctx context.Context, a *command.App, c *yard.Client, task *yardv1.Task) string {
	if a.JSON || task.State.Finished() || task.State == yardv1.TaskState_TASK_STATE_RUNNING {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, whyWait)
	defer cancel()
	why, err := explain.Task(ctx, c, task.TaskId)
	switch {
	case err != nil:
		return ""
	case len(why.Reasons) == 0:
		return getsNext
	case len(why.Reasons) == 1:
		return why.Reasons[0].Text
	}
	return fmt.Sprintf("%s `yard task explain` shows %d reasons.", why.Reasons[0].Text, len(why.Reasons))
}
