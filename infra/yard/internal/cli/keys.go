package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func (a *app) keysCommand() *cobra.Command {
	return group("keys", "List, show, unblock and skip order keys: tasks that run one at a time", a.keysList(), a.keysGet(), a.keysUnblock(), a.keysSkip())
}

func (a *app) keysList() *cobra.Command {
	var limit int
	req := &yardv1.ListKeysRequest{}
	cmd := &cobra.Command{
		Use: "list", Short: "List the order keys with unfinished tasks, the one that waits for longest first",
		Example: "  yard keys list --blocked\n  yard keys list --waiting --limit 10",
		Args:    noArgs,
		RunE: a.client(func(ctx context.Context, c *yard.Client, _ []string) error {
			all, more, err := firstOf(limit, func() ([]*yardv1.OrderKey, string, error) {
				page, err := c.Wire().ListKeys(ctx, req)
				req.Cursor = page.GetNextCursor()
				return page.GetKeys(), req.Cursor, err
			})
			if err != nil {
				return err
			}
			return a.printKeys(all, more)
		}),
	}
	cmd.Flags().BoolVar(&req.Blocked, "blocked", false, "only those that their first task blocks")
	cmd.Flags().BoolVar(&req.Waiting, "waiting", false, "only those that are blocked, or in which tasks wait behind the first one")
	cmd.Flags().IntVar(&limit, "limit", 100, "the most to list; 0 = all")
	return cmd
}

func (a *app) printKeys(all []*yardv1.OrderKey, more bool) error {
	return a.show(&yardv1.ListKeysResponse{Keys: all}, func(t *table) {
		t.row("KEY", "FIRST TASK", "TYPE", "STATE", "SINCE", "WAITING", "REASON")
		for _, k := range all {
			state := k.Head.GetState().Name()
			if k.Head.GetBlocked() {
				state = "blocked"
			}
			t.row(k.OrderKey, k.Head.GetTaskId(), k.Head.GetType(), state, at(k.SinceMs), k.Waiting, orDash(k.Reason))
		}
		t.more(more)
	})
}

func (a *app) keysGet() *cobra.Command {
	return &cobra.Command{
		Use: "get KEY", Short: "Show an order key: its first task, and how many wait",
		Example: "  yard keys get account-7",
		Args:    argCount(1, 1, "one order key"),
		RunE: a.client(func(ctx context.Context, c *yard.Client, args []string) error {
			k, err := c.Wire().GetKey(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(k)
			}
			return a.printKeys([]*yardv1.OrderKey{k}, false)
		}),
	}
}

// keyFlags are those of what is done to a key.
func keyFlags(cmd *cobra.Command, o *yard.KeyOptions) {
	cmd.Flags().StringVar(&o.TaskID, "task", "", "only if this is the first task of the key")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why, for people; it is in the history of the task")
	byFlag(cmd.Flags(), &o.By, "does it")
}

func (a *app) keysUnblock() *cobra.Command {
	var o yard.KeyOptions
	var attempts int
	cmd := &cobra.Command{
		Use: "unblock KEY", Short: "Give the task that blocks an order key one more attempt",
		Example: "  yard keys unblock account-7\n  yard keys unblock account-7 --max-attempts 8 --reason 'the bank is up again'",
		Args:    argCount(1, 1, "one order key"),
		RunE: a.client(func(ctx context.Context, c *yard.Client, args []string) error {
			if attempts != 0 {
				o.Retry = &yard.RetryPolicy{MaxAttempts: attempts}
			}
			id, err := c.UnblockKey(ctx, args[0], o)
			return a.printKeyChange(id, "is tried again", err)
		}),
	}
	keyFlags(cmd, &o)
	cmd.Flags().IntVar(&attempts, "max-attempts", 0, "failures until it blocks the key again, those before counted; default: the next one")
	return cmd
}

func (a *app) keysSkip() *cobra.Command {
	var o yard.KeyOptions
	cmd := &cobra.Command{
		Use: "skip KEY", Short: "Make the first task of an order key a dead letter, so that the key goes on",
		Long: `Make the first task of an order key a dead letter, so that the key goes on with the next one. "yard dead
redrive" brings the task back, without its key. One that runs is not skipped; --cancel-running asks its
worker to stop, and the task is cancelled when its attempt has ended.`,
		Example: "  yard keys skip account-7 --reason 'the account is closed'",
		Args:    argCount(1, 1, "one order key"),
		RunE: a.client(func(ctx context.Context, c *yard.Client, args []string) error {
			done := "is skipped"
			if o.CancelRunning {
				done = "is skipped, or its worker is asked to stop"
			}
			id, err := c.SkipKey(ctx, args[0], o)
			return a.printKeyChange(id, done, err)
		}),
	}
	keyFlags(cmd, &o)
	cmd.Flags().BoolVar(&o.CancelRunning, "cancel-running", false, "if the task runs, ask its worker to stop")
	return cmd
}

// printKeyChange says to which task of an order key something was done.
func (a *app) printKeyChange(id, done string, err error) error {
	if err != nil {
		return err
	}
	return a.show(&yardv1.SkipKeyResponse{TaskId: id}, func(t *table) { t.row("task " + id + " " + done) })
}
