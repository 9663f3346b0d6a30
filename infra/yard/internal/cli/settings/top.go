package settings

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// topWatchMin is how often limits may be looked at at most.
const topWatchMin = 500 * time.Millisecond

func limitTop(a *command.App) *cobra.Command {
	req := &yardv1.TopLimitsRequest{}
	var watch time.Duration
	cmd := &cobra.Command{
		Use: "top", Short: "Show which limits are full, who holds their slots, and who waits for one",
		Long: `Show the limits of the domain that are in use: its own, those of tasklists and types, and those that
types share. For how long and how often each was full in the last hour, the attempts that have had
a slot for the longest, and the tasklists that have waited for one for the longest: a poll waits there,
and tasks are ready.

Matching keeps this in memory: what it saw starts over when another node takes over.`,
		Example: `  yard limit top
  yard limit top --by-waiting --limit 3 --each 10 --watch 2s`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch != 0 && watch < topWatchMin {
				return command.Usagef("--watch %v is less than %v", watch, topWatchMin)
			}
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error { return top(ctx, a, c, req, watch) })
		},
	}
	flags := cmd.Flags()
	flags.Int32VarP(&req.Limit, "limit", "n", 0, "how many limits, up to 100; 0 = the default, 10")
	flags.Int32Var(&req.Each, "each", 0, "how many holders and waiters of each, up to 10; 0 = the default, 3")
	flags.BoolVar(&req.ByWaiting, "by-waiting", false, "those first for which the most tasks wait; default the most saturated")
	command.DurationVar(flags, &watch, "watch", 0, "show it again after so long, until stopped, 500ms or more; 0 = once")
	return cmd
}

// top prints limits once, or until ctx ends.
func top(ctx context.Context, a *command.App, c *yard.Client, req *yardv1.TopLimitsRequest, watch time.Duration) error {
	for {
		top, err := c.Wire().TopLimits(ctx, req)
		if err != nil {
			return err
		}
		if err := printTop(a, top); err != nil || watch == 0 {
			return err
		}
		if !backoff.Sleep(ctx, watch) {
			return nil
		}
		if !a.JSON {
			if _, err := fmt.Fprintf(a.Out, "\n-- %s\n", time.Now().Format(command.TimeForm)); err != nil {
				return err
			}
		}
	}
}

func printTop(a *command.App, top *yardv1.TopLimitsResponse) error {
	return a.Show(top, func(limits *command.Table) {
		var holders, waiters command.Table
		limits.Row("LIMIT", "CONCURRENCY", "IN USE", "FULL", "FULL SINCE", "WAITING", "TASKLISTS", command.Wide{"RUNNING", "UNEXPLAINED", "RECLAIMED", "SHARDS"})
		holders.Row("HOLDS A SLOT OF", "TASK", "TYPE", "TASKLIST", "WORKER", "STATE", "FOR")
		waiters.Row("WAITS FOR", "TASKLIST", "READY", "PRIORITY", "FOR")
		for _, l := range top.Limits {
			full := "-"
			if l.FullForMs > 0 {
				full = command.Ago(l.FullForMs)
			}
			shards := command.Each(l.Shards, func(s *yardv1.ShardSlots) string { return fmt.Sprintf("%d=%d/%d", s.Shard, s.Running, s.Slots) })
			limits.Row(l.Ref, l.MaxConcurrency, l.SlotsInUse, saturation(l), full, l.WaitingTasks, l.WaitingTasklists,
				command.Wide{l.Running, l.UnexplainedSlots, l.ReclaimedSlots, command.OrDash(strings.Join(shards, " "))})
			for _, h := range l.Holders {
				state := "-"
				if h.State != 0 {
					state = h.State.Name()
				}
				holders.Row(l.Ref, h.TaskId, command.OrDash(h.Type), command.OrDash(h.Tasklist), command.OrDash(h.Worker), state, command.Lasting(h.HeldForMs))
			}
			for _, w := range l.Waiters {
				waiters.Row(l.Ref, w.Tasklist, w.Tasks, w.Priority, command.Lasting(w.WaitingForMs))
			}
		}
		for _, t := range []command.Table{holders, waiters} {
			if len(t.Rows) > 1 {
				limits.Row()
				limits.Rows = append(limits.Rows, t.Rows...)
			}
		}
		for i, note := range topNotes(top) {
			if i == 0 {
				limits.Row()
			}
			limits.Row(note)
		}
	})
}

// topNotes are what the tables do not say.
func topNotes(top *yardv1.TopLimitsResponse) (notes []string) {
	note := func(is bool, format string, args ...any) {
		if is {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	note(len(top.Limits) == 0, "no limit of the domain is in use, or was full in the last hour")
	for _, l := range top.Limits {
		note(l.Shadow, "%s is in shadow and holds nothing up: of the attempts of the last hour it would have held up %d", l.Ref, l.WouldWait)
		note(l.Rejected > 0, "%s: %d tasks of the last hour were rejected, since it was full", l.Ref, l.Rejected)
		note(l.Displaced > 0, "%s: %d attempts of the last hour were asked to make room for newer tasks", l.Ref, l.Displaced)
		note(l.UnexplainedSlots > 0, "%s: %d slots are in use that no shard knows of; if that lasts for a minute, they are lost until their leases end", l.Ref, l.UnexplainedSlots)
	}
	note(top.Others > 0, "%d more limits are in use", top.Others)
	note(len(top.SilentShards) > 0, "matching shards %s did not answer: what is there is missing", strings.Trim(fmt.Sprint(top.SilentShards), "[]"))
	return notes
}

// saturation is how often a limit was full.
func saturation(l *yardv1.LimitUse) string {
	return fmt.Sprintf("%d%% of %s", l.SaturationPercent, command.Lasting(l.ObservedMs))
}
