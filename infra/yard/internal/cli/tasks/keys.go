package tasks

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// KeysCommand is `yard keys`.
func KeysCommand(a *command.App) *cobra.Command {
	return command.Group("keys", "List, show, unblock and skip order keys: tasks that run one at a time", keysList(a), keysGet(a), keysUnblock(a), keysSkip(a))
}

func keysList(a *command.App) *cobra.Command {
	var limit int
	req := &yardv1.ListKeysRequest{}
	cmd := &cobra.Command{
		Use: "list", Short: "List the order keys with unfinished tasks, the one that waits for longest first",
		Example: "  yard keys list --blocked\n  yard keys list --waiting --limit 10",
		Args:    command.NoArgs,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, _ []string) error {
			all, more, err := command.FirstOf(limit, func() ([]*yardv1.OrderKey, string, error) {
				page, err := c.Wire().ListKeys(ctx, req)
				req.Cursor = page.GetNextCursor()
				return page.GetKeys(), req.Cursor, err
			})
			if err != nil {
				return err
			}
			return printKeys(a, all, more)
		}),
	}
	cmd.Flags().BoolVar(&req.Blocked, "blocked", false, "only those that their first task blocks")
	cmd.Flags().BoolVar(&req.Waiting, "waiting", false, "only those that are blocked, or in which tasks wait behind the first one")
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "the most to list; 0 = all")
	return cmd
}

func printKeys(a *command.App, all []*yardv1.OrderKey, more bool) error {
	return a.Show(&yardv1.ListKeysResponse{Keys: all}, func(t *command.Table) {
		keyRows(t, all)
		t.More(more)
	})
}

func keyRows(t *command.Table, all []*yardv1.OrderKey) {
	t.Row("KEY", "FIRST TASK", "TYPE", "STATE", "SINCE", "WAITING", "REASON")
	for _, k := range all {
		state := k.Head.GetState().Name()
		if k.Head.GetBlocked() {
			state = "blocked"
		}
		t.Row(k.OrderKey, k.Head.GetTaskId(), k.Head.GetType(), state, command.At(k.SinceMs), k.Waiting, command.OrDash(k.Reason))
	}
}

func keysGet(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "get KEY", Short: "Show an order key: its first task, and how many wait",
		Example: "  yard keys get account-7",
		Args:    command.ArgCount(1, 1, "one order key"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			k, err := c.Wire().GetKey(ctx, args[0])
			if err != nil {
				return err
			}
			return a.Show(k, func(t *command.Table) { keyRows(t, []*yardv1.OrderKey{k}) })
		}),
	}
}

// keyFlags are those of what is done to a key.
func keyFlags(cmd *cobra.Command, o *yard.KeyOptions) {
	cmd.Flags().StringVar(&o.TaskID, "task", "", "only if this is the first task of the key")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why, for people; it is in the history of the task")
	command.ByFlag(cmd.Flags(), &o.By, "does it")
}

func keysUnblock(a *command.App) *cobra.Command {
	var o yard.KeyOptions
	var attempts int
	cmd := &cobra.Command{
		Use: "unblock KEY", Short: "Give the task that blocks an order key one more attempt",
		Example: "  yard keys unblock account-7\n  yard keys unblock account-7 --max-attempts 8 --reason 'the bank is up again'",
		Args:    command.ArgCount(1, 1, "one order key"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			if attempts != 0 {
				o.Retry = &yard.RetryPolicy{MaxAttempts: attempts}
			}
			id, err := c.UnblockKey(ctx, args[0], o)
			return printKeyChange(a, id, "is tried again", err)
		}),
	}
	keyFlags(cmd, &o)
	cmd.Flags().IntVar(&attempts, "max-attempts", 0, "failures until it blocks the key again, those before counted; default: the next one")
	return cmd
}

func keysSkip(a *command.App) *cobra.Command {
	var o yard.KeyOptions
	yes := false
	cmd := &cobra.Command{
		Use: "skip KEY", Short: "Make the first task of an order key a dead letter, so that the key goes on, or show it first",
		Long: `Make the first task of an order key a dead letter, so that the key goes on with the next one. "yard dead
redrive" brings the task back, without its key. One that runs is not skipped; --cancel-running asks its
worker to stop, and the task is cancelled when its attempt has ended. Without --yes the key is only shown.`,
		Example: "  yard keys skip account-7\n  yard keys skip account-7 --reason 'the account is closed' --yes",
		Args:    command.ArgCount(1, 1, "one order key"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			if !yes {
				k, err := c.Wire().GetKey(ctx, args[0])
				if err != nil {
					return err
				}
				return a.Show(k, func(t *command.Table) {
					keyRows(t, []*yardv1.OrderKey{k})
					t.Preview(true)
				})
			}
			done := "is skipped"
			if o.CancelRunning {
				done = "is skipped, or its worker is asked to stop"
			}
			id, err := c.SkipKey(ctx, args[0], o)
			return printKeyChange(a, id, done, err)
		}),
	}
	keyFlags(cmd, &o)
	cmd.Flags().BoolVar(&yes, "yes", false, command.YesUsage)
	cmd.Flags().BoolVar(&o.CancelRunning, "cancel-running", false, "if the task runs, ask its worker to stop")
	return cmd
}

// printKeyChange says to which task of an order key something was done.
func printKeyChange(a *command.App, id, done string, err error) error {
	if err != nil {
		return err
	}
	return a.Show(&yardv1.SkipKeyResponse{TaskId: id}, func(t *command.Table) { t.Row("task " + id + " " + done) })
}
