package tasks

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// DeadCommand is `yard dead`.
func DeadCommand(a *command.App) *cobra.Command {
	return command.Group("dead", "List, count, get, redrive and delete dead letters: tasks that used up their attempts",
		deadList(a), deadCount(a), deadGet(a), deadRedrive(a), deadDelete(a))
}

// deadLetterFlags pick dead letters.
type deadLetterFlags struct {
	yard.DeadLetterFilter
	since, until time.Duration
	// all and yes are of what changes them.
	all, yes bool
}

func (f *deadLetterFlags) add(flags *pflag.FlagSet) {
	flags.StringVarP(&f.Tasklist, "tasklist", "t", "", "only of this tasklist")
	flags.StringVar(&f.Type, "type", "", "only of this type")
	flags.StringVar(&f.Group, "group", "", "only of this group")
	flags.StringVar(&f.ErrorType, "error-type", "", "only with this class of error")
	command.DurationVar(flags, &f.since, "since", 0, "only those that ended within this duration, such as 24h")
	command.DurationVar(flags, &f.until, "until", 0, "only those that ended before this duration, such as 30d")
}

func (f *deadLetterFlags) addChange(flags *pflag.FlagSet) {
	f.add(flags)
	flags.BoolVar(&f.all, "all", false, "all dead letters of the domain")
	flags.BoolVar(&f.yes, "yes", false, command.YesUsage)
}

// filter is what the flags say.
func (f *deadLetterFlags) filter(now time.Time) yard.DeadLetterFilter {
	if f.since > 0 {
		f.Since = now.Add(-f.since)
	}
	if f.until > 0 {
		f.Until = now.Add(-f.until)
	}
	return f.DeadLetterFilter
}

func deadList(a *command.App) *cobra.Command {
	var f deadLetterFlags
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List dead letters, the oldest first",
		Example: "  yard dead list --type email.send --error-type network --since 24h",
		Args:    command.NoArgs,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, _ []string) error {
			req := &yardv1.ListDeadLettersRequest{Filter: f.filter(time.Now()).Wire()}
			all, more, err := command.FirstOf(limit, func() ([]*yardv1.Task, string, error) {
				page, err := c.Wire().ListDeadLetters(ctx, req)
				req.Cursor = page.GetNextCursor()
				return page.GetTasks(), req.Cursor, err
			})
			if err != nil {
				return err
			}
			return printDeadLetters(a, all, more)
		}),
	}
	f.add(cmd.Flags())
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "the most to list; 0 = all")
	return cmd
}

func printDeadLetters(a *command.App, all []*yardv1.Task, more bool) error {
	return a.Show(&yardv1.ListDeadLettersResponse{Tasks: all}, func(t *command.Table) {
		t.Row("TASK", "TYPE", "TASKLIST", "DEAD SINCE", "ERROR TYPE", "ERROR")
		for _, task := range all {
			t.Row(task.TaskId, task.Type, task.Tasklist, command.At(task.FinishedAtMs), task.ErrorType, task.ErrorMessage)
		}
		t.More(more)
	})
}

func deadCount(a *command.App) *cobra.Command {
	var f deadLetterFlags
	var period time.Duration
	cmd := &cobra.Command{
		Use: "count", Short: "Count dead letters by type, error and time",
		Example: "  yard dead count\n  yard dead count --type email.send --period 1h",
		Args:    command.NoArgs,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, _ []string) error {
			all, err := c.CountDeadLetters(ctx, f.filter(time.Now()), period)
			if err != nil {
				return err
			}
			return a.Show(all, func(t *command.Table) {
				t.Row("TYPE", "ERROR TYPE", "PERIOD", "LETTERS", "FIRST", "LAST")
				for _, n := range all {
					from := "-"
					if !n.Period.IsZero() {
						from = command.At(n.Period.UnixMilli())
					}
					t.Row(n.Type, n.ErrorType, from, n.Letters, command.At(n.First.UnixMilli()), command.At(n.Last.UnixMilli()))
				}
			})
		}),
	}
	f.add(cmd.Flags())
	command.DurationVar(cmd.Flags(), &period, "period", 0, "count those apart that ended in different periods of this length, such as 1h")
	return cmd
}

func deadGet(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "get TASK", Short: "Show a dead letter, whole",
		Example: "  yard dead get 06gzvkw0fc003ewx4bxvk83r20",
		Args:    command.ArgCount(1, 1, "one task id"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			task, err := c.Wire().GetDeadLetter(ctx, args[0])
			if err != nil {
				return err
			}
			return printTask(a, task, "")
		}),
	}
}

// which says what a redrive or a deletion is about: tasks by id, or flags. Without either it would be about all, by mistake.
func (f *deadLetterFlags) which(named []string) error {
	filtered := f.DeadLetterFilter != (yard.DeadLetterFilter{}) || f.since > 0 || f.until > 0
	switch {
	case len(named) > 0 && (filtered || f.all):
		return command.Usagef("name task ids, or flags that select dead letters, not both")
	case len(named) == 0 && !filtered && !f.all:
		return command.Usagef("name task ids, or flags that select dead letters, such as --type; --all selects all of the domain")
	}
	return nil
}

func deadRedrive(a *command.App) *cobra.Command {
	var f deadLetterFlags
	var o yard.RedriveOptions
	var retry yard.RetryPolicy
	cmd := &cobra.Command{
		Use: "redrive [TASK...]", Short: "Bring dead letters back, or count them first",
		Long: `Bring dead letters back: the same tasks, with their ids and histories, whose failures count from 0
again. Without --yes they are only counted. It goes step by step at --rate, with progress; ctrl-C ends
it, and a second redrive does no harm. A task does not take its unique key again.`,
		Example: `  yard dead redrive --type email.send --error-type network
  yard dead redrive --type email.send --error-type network --rate 50 --max-attempts 5 --yes
  yard dead redrive --tasklist mail --to mail-slow --yes
  yard dead redrive 06gzvkw0fc003ewx4bxvk83r20 --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(f.which(args), command.CheckRate(o.Rate, "task")); err != nil {
				return err
			}
			if !NoPolicy(retry) {
				o.Retry = &retry
			}
			o.TaskIDs, o.Filter, o.Preview = args, f.filter(time.Now()), !f.yes
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error { return redrive(ctx, a, c, o) })
		},
	}
	flags := cmd.Flags()
	f.addChange(flags)
	flags.IntVar(&o.Rate, "rate", 200, "the most tasks to bring back a second")
	flags.StringVar(&o.Tasklist, "to", "", "tasklist that the tasks move to; default: each stays in its own")
	flags.StringVar(&o.Reason, "reason", "", "why, for people; it is in the history of each task")
	command.ByFlag(flags, &o.By, "redrives them")
	PolicyFlags(flags, &retry)
	return cmd
}

// errUndecided: some tasks may be back, and some not.
var errUndecided = errors.New("the log has not said in time what became of some of them: repeat it")

func redrive(ctx context.Context, a *command.App, c *yard.Client, o yard.RedriveOptions) error {
	r := a.Reporter("redriven")
	o.Progress = func(p yard.Redriven) { r.Step(p.Found, p.Redriven) }
	p, err := c.Redrive(ctx, o)
	if err != nil {
		return r.Given(err, p.Found, p.Redriven)
	}
	err = a.Show(&yardv1.RedriveResponse{Found: p.Found, Redriven: p.Redriven, Refused: p.Refused, Undecided: p.Undecided}, func(t *command.Table) {
		t.Row("FOUND", "REDRIVEN", "REFUSED", "UNDECIDED")
		t.Row(p.Found, p.Redriven, p.Refused, p.Undecided)
		t.Preview(o.Preview)
	})
	switch {
	case err == nil && p.Undecided > 0:
		return errUndecided
	case err == nil && p.Refused > 0 && len(o.TaskIDs) > 0:
		return fault.New(fault.FailedPrecondition, "%d of the named tasks are no dead letters", p.Refused)
	}
	return err
}

func deadDelete(a *command.App) *cobra.Command {
	var f deadLetterFlags
	var o yard.PurgeDeadLettersOptions
	cmd := &cobra.Command{
		Use: "delete [TASK...]", Short: "Delete dead letters, or count them first",
		Long: `Delete dead letters, which acknowledges them: their tasks remain dead, can be read for the retention of the domain,
and cannot be redriven any more. Without --yes they are only counted. It goes step by step at --rate, with
progress; ctrl-C ends it.`,
		Example: "  yard dead delete --until 30d\n  yard dead delete --until 30d --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(f.which(args), command.CheckRate(o.Rate, "letter")); err != nil {
				return err
			}
			o.TaskIDs, o.Filter, o.Preview = args, f.filter(time.Now()), !f.yes
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error { return deleteDeadLetters(ctx, a, c, o) })
		},
	}
	flags := cmd.Flags()
	f.addChange(flags)
	flags.IntVar(&o.Rate, "rate", 500, "the most letters to delete a second")
	flags.StringVar(&o.Reason, "reason", "", "the reason, for people; the audit has it")
	command.ByFlag(flags, &o.By, "deletes them")
	return cmd
}

func deleteDeadLetters(ctx context.Context, a *command.App, c *yard.Client, o yard.PurgeDeadLettersOptions) error {
	r := a.Reporter("deleted")
	o.Progress = func(p yard.PurgedDeadLetters) { r.Step(p.Found, p.Purged) }
	p, err := c.PurgeDeadLetters(ctx, o)
	if err != nil {
		return r.Given(err, p.Found, p.Purged)
	}
	return a.Show(&yardv1.PurgeDeadLettersResponse{Found: p.Found, Purged: p.Purged}, func(t *command.Table) {
		t.Row("FOUND", "DELETED")
		t.Row(p.Found, p.Purged)
		t.Preview(o.Preview)
	})
}
