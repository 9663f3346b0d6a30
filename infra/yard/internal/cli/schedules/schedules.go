// Package schedules has the commands of schedules.
//
// Owns: `yard schedule` and what its answers look like. Never does: compute a time; the engine does. On failure: the error goes to the caller.
package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// Command is `yard schedule`.
func Command(a *command.App) *cobra.Command {
	return command.Group("schedule", "Schedules: submit a task again and again, at times of a calendar",
		put(a), get(a), list(a), remove(a),
		pausing(a, "pause", "Have a schedule make no runs until it is resumed", schedules.Schedules.Pause),
		pausing(a, "resume", "End the pause of a schedule; times that have passed are not missed", schedules.Schedules.Resume),
		trigger(a), backfill(a), next(a))
}

// values are the flags that need more than their value.
type values struct {
	payload, overlap, missed, start, end string
}

// timeFlags adds the flags of the times of a schedule.
func timeFlags(flags *pflag.FlagSet, s *schedules.Schedule, v *values) {
	flags.StringArrayVar(&s.Cron, "cron", nil, `a cron expression, such as "30 2 * * mon-fri"; may be given several times`)
	command.DurationVar(flags, &s.Every, "every", 0, "a run each time this has passed, 1s to 366d")
	flags.StringVar(&s.TimeZone, "time-zone", "", "the IANA name of the time zone, such as Europe/Berlin; default UTC")
	flags.StringArrayVar(&s.ExcludeDates, "exclude-date", nil, "a day without runs: 2026-12-24, or 12-24 for each year; may be given several times")
	flags.StringArrayVar(&s.ExcludeCron, "exclude-cron", nil, "times that match this cron expression have no run; may be given several times")
	flags.StringVar(&v.start, "start", "", "no run before this time, such as 2026-12-24T18:00:00+01:00")
	flags.StringVar(&v.end, "end", "", "no run at this time or later")
	flags.Int64Var(&s.RunsMax, "max-runs", 0, "the most runs; 0 = any number")
}

// complete reads what flags say in texts.
func (v *values) complete(s *schedules.Schedule) (err error) {
	s.Overlap, s.Missed = schedules.Overlap(v.overlap), schedules.Missed(v.missed)
	if s.StartAt, err = command.ParseTime("start", v.start); err != nil {
		return err
	}
	if s.EndAt, err = command.ParseTime("end", v.end); err != nil {
		return err
	}
	if v.payload == "" {
		return nil
	}
	if !codec.ValidJSON([]byte(v.payload)) {
		return command.Usagef("the payload %q is not a JSON value; text needs quotes of its own: '\"text\"'", v.payload)
	}
	s.Task.Payload = json.RawMessage(v.payload)
	return nil
}

func put(a *command.App) *cobra.Command {
	var s schedules.Schedule
	var v values
	cmd := &cobra.Command{
		Use: "put NAME", Short: "Make a schedule, or replace one",
		Long: `Make a schedule, or replace one as a whole: what is not given as a flag has its default. Its counts, its
last runs and the runs that wait are kept. Times before the put have no run.

In the payload {{run_at}}, {{run_at_ms}}, {{run_date}} and {{schedule}} are replaced by the time of the run, its date
and the name of the schedule.`,
		Example: `  yard schedule put nightly --cron "30 2 * * *" --time-zone Europe/Berlin --type report.build -t reports --payload '{"day":"{{run_date}}"}'
  yard schedule put poll --every 10m --type feed.poll -t feeds --overlap allow`,
		Args: command.ArgCount(1, 1, "one schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Name = args[0]
			if err := v.complete(&s); err != nil {
				return err
			}
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				info, err := schedules.Of(c).Put(ctx, s)
				if err != nil {
					return err
				}
				return printInfo(a, info)
			})
		},
	}
	flags := cmd.Flags()
	timeFlags(flags, &s, &v)
	flags.StringVar(&s.Task.Type, "type", "", "the type of the task of each run")
	flags.StringVarP(&s.Task.Tasklist, "tasklist", "t", "", "the tasklist of the task")
	flags.StringVar(&v.payload, "payload", "", "the payload of the task, a JSON value; default none")
	flags.StringVar(&v.overlap, "overlap", "", "if an earlier run has not ended: skip, buffer_one, buffer_all, allow or cancel_other; default skip")
	flags.StringVar(&v.missed, "missed", "", "runs that are made up for if the engine was down: all, last or skip; default last")
	command.DurationVar(flags, &s.CatchUp, "catch-up", 0, "how old a missed run may be that is made up for; default 1h")
	command.DurationVar(flags, &s.Jitter, "jitter", 0, "make each run later by up to this time, at most 24h")
	flags.BoolVar(&s.Paused, "paused", false, "make no runs until it is resumed")
	flags.StringVar(&s.Note, "note", "", "for people")
	return cmd
}

func get(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a schedule, its next times and its last runs", Example: "  yard schedule get nightly", Args: command.ArgCount(1, 1, "one schedule"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			info, err := schedules.Of(c).Get(ctx, args[0])
			if err != nil {
				return err
			}
			return printInfo(a, info)
		}),
	}
}

func list(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the schedules of the domain", Example: "  yard schedule list", Args: command.NoArgs,
		Long: `List the schedules of the domain, and count their runs. SKIPPED are those that did not start since the one before had not ended, by the overlap
policy; MISSED are those that no one could start in time, by the policy for missed runs.`,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, _ []string) error {
			all, err := command.Gather(schedules.Of(c).All(ctx))
			if err != nil {
				return err
			}
			return printAll(a, all)
		}),
	}
}

func remove(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "End a schedule; tasks of its runs go on", Example: "  yard schedule delete nightly", Args: command.ArgCount(1, 1, "one schedule"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			deleted, err := schedules.Of(c).Delete(ctx, args[0])
			if err != nil {
				return err
			}
			if !deleted {
				return fault.New(fault.NotFound, "there is no schedule %q", args[0])
			}
			return a.Show(&yardv1.DeleteScheduleResponse{Deleted: true}, func(t *command.Table) { t.Row("schedule " + args[0] + " is deleted") })
		}),
	}
}

// pausing is pause or resume.
func pausing(a *command.App, verb, short string, do func(schedules.Schedules, context.Context, string, string) (*schedules.Info, error)) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: verb + " NAME", Short: short, Example: "  yard schedule " + verb + " nightly --note \"the source is down\"", Args: command.ArgCount(1, 1, "one schedule"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			info, err := do(schedules.Of(c), ctx, args[0], note)
			if err != nil {
				return err
			}
			return printInfo(a, info)
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "replaces the note of the schedule")
	return cmd
}

func trigger(a *command.App) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use: "trigger NAME", Short: "Make one run now, also of a paused schedule", Example: "  yard schedule trigger nightly", Args: command.ArgCount(1, 1, "one schedule"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			at, err := schedules.Of(c).Trigger(ctx, args[0], id)
			if err != nil {
				return err
			}
			return a.Show(&yardv1.TriggerScheduleResponse{RunAtMs: at.UnixMilli()}, func(t *command.Table) {
				t.Row("run of " + command.At(at.UnixMilli()) + "; yard schedule get shows its task")
			})
		}),
	}
	cmd.Flags().StringVar(&id, "request-id", "", "names the trigger: a repeat with the same id makes no other run")
	return cmd
}

func backfill(a *command.App) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use: "backfill NAME", Short: "Make the runs of a stretch of the past again",
		Example: "  yard schedule backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z",
		Args:    command.ArgCount(1, 1, "one schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			first, err := command.ParseTime("from", from)
			if err != nil {
				return err
			}
			last, err := command.ParseTime("to", to)
			if err != nil {
				return err
			}
			if first.IsZero() || last.IsZero() {
				return command.Usagef("%s wants --from and --to", cmd.CommandPath())
			}
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				n, err := schedules.Of(c).Backfill(ctx, args[0], first, last)
				if err != nil {
					return err
				}
				return a.Show(&yardv1.BackfillScheduleResponse{Runs: int32(n)}, func(t *command.Table) {
					t.Row("RUNS")
					t.Row(n)
				})
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the first time, such as 2026-11-01T00:00:00Z")
	cmd.Flags().StringVar(&to, "to", "", "the last time")
	return cmd
}

func next(a *command.App) *cobra.Command {
	var s schedules.Schedule
	var v values
	var after string
	limit := 10
	cmd := &cobra.Command{
		Use: "next [NAME]", Short: "Show the next times of a schedule, or of one that is not made yet",
		Example: `  yard schedule next nightly
  yard schedule next --cron "30 2 * * mon-fri" --time-zone Europe/Berlin`,
		Args: command.ArgCount(0, 1, "a schedule, or --cron or --every"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if given := len(s.Cron) > 0 || s.Every != 0; given == (len(args) == 1) {
				return command.Usagef("want either a schedule, or --cron or --every")
			}
			from, err := command.ParseTime("after", after)
			if err != nil {
				return err
			}
			if err := v.complete(&s); err != nil {
				return err
			}
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				times, err := nextTimes(ctx, schedules.Of(c), args, &s, from, limit)
				if err != nil {
					return err
				}
				return printTimes(a, times, s.TimeZone)
			})
		},
	}
	timeFlags(cmd.Flags(), &s, &v)
	cmd.Flags().IntVarP(&limit, "limit", "n", limit, "how many times, at most 1000")
	cmd.Flags().StringVar(&after, "after", "", "only times after this one; default now")
	return cmd
}

// nextTimes are the next times of the schedule that args name, or of s, which gets the time zone of the first.
func nextTimes(ctx context.Context, all schedules.Schedules, args []string, s *schedules.Schedule, after time.Time, limit int) ([]time.Time, error) {
	if len(args) == 0 {
		return all.NextOf(ctx, *s, after, limit)
	}
	info, err := all.Get(ctx, args[0])
	if err != nil {
		return nil, err
	}
	s.TimeZone = info.Schedule.TimeZone
	return all.Next(ctx, args[0], after, limit)
}

// zoneForm is how times are printed in the zone of a schedule.
const zoneForm = "Mon 2006-01-02 15:04:05 MST"

// zoneOf is a time zone by its name. One that this machine does not know is UTC.
func zoneOf(name string) *time.Location {
	zone, err := time.LoadLocation(cmp.Or(name, "UTC"))
	if err != nil {
		return time.UTC
	}
	return zone
}

func printTimes(a *command.App, times []time.Time, zone string) error {
	resp := &yardv1.NextScheduleResponse{NextMs: command.Each(times, time.Time.UnixMilli)}
	return a.Show(resp, func(t *command.Table) {
		t.Row("IN ITS ZONE", "LOCAL TIME")
		for _, at := range times {
			t.Row(at.In(zoneOf(zone)).Format(zoneForm), command.At(at.UnixMilli()))
		}
	})
}
