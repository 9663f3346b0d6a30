package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// topWatchMin is how often limits may be looked at at most.
const topWatchMin = 500 * time.Millisecond

func (a *app) limitTop() *cobra.Command {
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch != 0 && watch < topWatchMin {
				return usagef("--watch %v is less than %v", watch, topWatchMin)
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error { return a.top(ctx, c, req, watch) })
		},
	}
	flags := cmd.Flags()
	flags.Int32VarP(&req.Limit, "limit", "n", 0, "how many limits, up to 100; 0 = the default, 10")
	flags.Int32Var(&req.Each, "each", 0, "how many holders and waiters of each, up to 10; 0 = the default, 3")
	flags.BoolVar(&req.ByWaiting, "by-waiting", false, "those first for which the most tasks wait; default the most saturated")
	durationVar(flags, &watch, "watch", 0, "show it again after so long, until stopped, 500ms or more; 0 = once")
	return cmd
}

// top prints limits once, or until ctx ends.
func (a *app) top(ctx context.Context, c *yard.Client, req *yardv1.TopLimitsRequest, watch time.Duration) error {
	for {
		top, err := c.Wire().TopLimits(ctx, req)
		if err != nil {
			return err
		}
		if err := a.printTop(top); err != nil || watch == 0 {
			return err
		}
		timer := time.NewTimer(watch)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if !a.json {
			if _, err := fmt.Fprintf(a.Out, "\n-- %s\n", time.Now().Format(timeForm)); err != nil {
				return err
			}
		}
	}
}

func (a *app) printTop(top *yardv1.TopLimitsResponse) error {
	return a.show(top, func(limits *table) {
		var holders, waiters table
		limits.row("LIMIT", "CONCURRENCY", "IN USE", "FULL", "FULL SINCE", "WAITING", "TASKLISTS", wide{"RUNNING", "UNEXPLAINED", "RECLAIMED", "SHARDS"})
		holders.row("HOLDS A SLOT OF", "TASK", "TYPE", "TASKLIST", "WORKER", "STATE", "FOR")
		waiters.row("WAITS FOR", "TASKLIST", "READY", "PRIORITY", "FOR")
		for _, l := range top.Limits {
			full := "-"
			if l.FullForMs > 0 {
				full = ago(l.FullForMs)
			}
			shards := each(l.Shards, func(s *yardv1.ShardSlots) string { return fmt.Sprintf("%d=%d/%d", s.Shard, s.Running, s.Slots) })
			limits.row(l.Ref, l.MaxConcurrency, l.SlotsInUse, saturation(l), full, l.WaitingTasks, l.WaitingTasklists,
				wide{l.Running, l.UnexplainedSlots, l.ReclaimedSlots, orDash(strings.Join(shards, " "))})
			for _, h := range l.Holders {
				state := "-"
				if h.State != 0 {
					state = h.State.Name()
				}
				holders.row(l.Ref, h.TaskId, orDash(h.Type), orDash(h.Tasklist), orDash(h.Worker), state, lasting(h.HeldForMs))
			}
			for _, w := range l.Waiters {
				waiters.row(l.Ref, w.Tasklist, w.Tasks, w.Priority, lasting(w.WaitingForMs))
			}
		}
		for _, t := range []table{holders, waiters} {
			if len(t.rows) > 1 {
				limits.row()
				limits.rows = append(limits.rows, t.rows...)
			}
		}
		for i, note := range topNotes(top) {
			if i == 0 {
				limits.row()
			}
			limits.row(note)
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
	return fmt.Sprintf("%d%% of %s", l.SaturationPercent, lasting(l.ObservedMs))
}
