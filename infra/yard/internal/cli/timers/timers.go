// Package timers has the command that looks ahead: how many tasks are due when.
//
// Owns: `yard timers`, and what its answers look like. Never does: count; the engine does. On failure: the error goes to the caller.
package timers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/timers"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/chart"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

const day = 24 * time.Hour

// spans are the values of --by.
var spans = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": day}

// SpanFor is the span that fits to how far is looked ahead.
func SpanFor(within time.Duration) time.Duration {
	switch {
	case within <= 3*time.Hour:
		return time.Minute
	case within <= 7*day:
		return time.Hour
	}
	return day
}

// Command is `yard timers`.
func Command(a *command.App) *cobra.Command {
	q := timers.Query{}
	var by, file string
	cmd := &cobra.Command{
		Use: "timers", Short: "Count the tasks that wait for their time, by when they are due",
		Long: `Count the tasks of the domain that wait for their time, by the minute, hour or day in which they are due:
delayed tasks, and those that wait more than 10 s for their next attempt. The first line has the overdue
ones too. Lines without tasks are left out. Times are local, and days are those of UTC. With --type the tasks
that are due later are not counted.

The next runs of schedules are no tasks yet, and are not counted: yard schedule list shows them.`,
		Example: `  yard timers
  yard timers --within 30d --by day --png timers.png
  yard timers --within 1h --tasklist mail --json`,
		Args: command.NoArgs,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, _ []string) error {
			if q.Within <= 0 {
				return command.Usagef("--within %v: want more than 0", q.Within)
			}
			known := true
			if q.Span = SpanFor(q.Within); by != "" {
				q.Span, known = spans[by]
			}
			if !known {
				return command.Usagef("--by %s: want minute, hour or day", by)
			}
			if n := (q.Within-1)/q.Span + 1; n > spansMax {
				return command.Usagef("--by %s: --within has %d of them, at most %d are counted", by, n, spansMax)
			}
			counts, err := timers.Count(ctx, c, q)
			if err != nil {
				return err
			}
			if file != "" {
				if err := draw(file, a.Domain, q.Span, counts); err != nil {
					return err
				}
			}
			return a.Show(counts.Wire(), func(t *command.Table) { table(t, counts) })
		}),
	}
	flags := cmd.Flags()
	command.DurationVar(flags, &q.Within, "within", day, "how far to look ahead, up to 366d")
	flags.StringVar(&by, "by", "", "minute, hour or day, at most 1000 of them; default: minute up to 3h, hour up to 7d, day for more")
	flags.StringVarP(&q.Tasklist, "tasklist", "t", "", "only of this tasklist")
	flags.StringVar(&q.Type, "type", "", "only of this type")
	flags.StringVar(&file, "png", "", "draw a chart into this PNG file, too")
	return cmd
}

// spansMax is how many spans the API counts.
const spansMax = 1000

// barWidth is the length of the longest bar, in characters.
const barWidth = 40

func table(t *command.Table, counts *timers.Counts) {
	most := int64(1)
	for _, s := range counts.Spans {
		most = max(most, s.Tasks)
	}
	t.Row("FROM", "TASKS", "CHART")
	for _, s := range counts.Spans {
		t.Row(command.At(s.Start.UnixMilli()), s.Tasks, strings.Repeat("█", int(max(1, s.Tasks*barWidth/most))))
	}
	t.Row()
	Kinds(t, counts)
}

// others stands for the tasklists and types that are not counted by name.
const others = "(others)"

// Kinds adds the tasks that are due by tasklist and type, and the sums.
func Kinds(t *command.Table, counts *timers.Counts) {
	t.Row("TASKLIST", "TYPE", "TASKS")
	for _, k := range counts.Kinds {
		t.Row(cmp.Or(k.Tasklist, others), cmp.Or(k.Type, others), k.Tasks)
	}
	sum := fmt.Sprint(counts.Tasks, " in all")
	if counts.Later > 0 {
		sum += fmt.Sprint(", and ", counts.Later, " are due later")
	}
	t.Row(sum)
}

// forms are how the times of a chart are written, by span.
var forms = map[time.Duration]string{time.Minute: "15:04", time.Hour: "01-02 15:04", day: "01-02"}

// bars are the spans from the first to the last one with tasks. A day has its date in UTC.
func bars(span time.Duration, counts *timers.Counts) (labels []string, values []float64) {
	var next time.Time
	add := func(tasks int64) {
		labels, values = append(labels, next.Format(forms[span])), append(values, float64(tasks))
		next = next.Add(span)
	}
	for i, s := range counts.Spans {
		if i == 0 {
			next = s.Start
			if span == day {
				next = next.UTC()
			}
		}
		for next.Before(s.Start) {
			add(0)
		}
		add(s.Tasks)
	}
	return labels, values
}

// draw draws the spans from the first to the last one with tasks.
func draw(file, domain string, span time.Duration, counts *timers.Counts) error {
	labels, values := bars(span, counts)
	if len(values) == 0 {
		return errors.New("no task is due in this time, so there is nothing to draw")
	}
	title := fmt.Sprintf("%s: %d tasks, by when they are due", domain, counts.Tasks)
	png, err := chart.Bars("timers", title, labels, values)
	if err != nil {
		return err
	}
	return os.WriteFile(file, png, 0o644)
}
