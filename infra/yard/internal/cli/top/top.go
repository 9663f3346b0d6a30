// Package top has the command that shows the whole cluster: which domains do and have most, which limits are full, and which timers are late.
//
// Owns: `yard top`, and what a frame of it shows. Never does: count; the engine does. On failure: a frame without an answer shows the last one and says why;
// without any answer the error goes to the caller.
package top

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/busiest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/screen"
)

// intervalMin is how often the engine may be asked at most.
const intervalMin = 500 * time.Millisecond

// options are the flags.
type options struct {
	req      yardv1.TopDomainsRequest
	interval time.Duration
	once     bool
}

// Command is `yard top`.
func Command(a *command.App) *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use: "top", Short: "Show live what all domains do and have, which limits are full, and which timers are late",
		Long: `Show live what all domains do and have, which limits are full, and which timers are late. q ends it. If the
output is no terminal, and with --json, it is printed once.

Rates are of about the last 10 to 20 s. SHARE is the part of a domain's weight of the weights of all domains with
work, RECEIVED its part of what all completed: less than the share is no harm while it has no ready task. IN counts tasks
that history reads from the disk for the first time; UNREAD counts messages of up to 1000 tasks that are still
there, of queues that are split off (see yard cluster queues). OLDEST is for how long the oldest ready task has waited,
WAITING counts tasks in the timer store, and LATE is how late the next of them is.`,
		Example: `  yard top
  yard top --by late --interval 5s
  yard top --once --by failed -n 5
  yard top --json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.interval < intervalMin:
				return command.Usagef("--interval %v is less than %v", o.interval, intervalMin)
			case !busiest.Known(o.req.By):
				return command.Usagef("--by %s: want one of %s", o.req.By, strings.Join(busiest.Names(), ", "))
			}
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				on := screen.Of(a.Out)
				if on == nil || o.once || a.JSON {
					resp, err := c.Admin().TopDomains(ctx, &o.req)
					if err != nil {
						return err
					}
					return a.Show(resp, func(t *command.Table) { fill(t, resp) })
				}
				return live(ctx, a, on, &o, func(ctx context.Context) (*yardv1.TopDomainsResponse, error) {
					return c.Admin().TopDomains(ctx, &o.req)
				})
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.req.By, "by", busiest.Default, "which domains come first: "+strings.Join(busiest.Names(), ", "))
	flags.Int32VarP(&o.req.Limit, "limit", "n", 20, "the most domains, and the most limits, 1 to 100")
	command.DurationVar(flags, &o.interval, "interval", 2*time.Second, "how often it is shown again, 500ms or more")
	flags.BoolVar(&o.once, "once", false, "print it once")
	return cmd
}

// live shows frames until q is pressed or ctx ends. The first answer has to come; later ones may fail.
func live(ctx context.Context, a *command.App, on *screen.Screen, o *options, ask func(context.Context) (*yardv1.TopDomainsResponse, error)) error {
	last, err := ask(ctx)
	if err != nil {
		return err
	}
	quit, restore, err := screen.Quit(a.In)
	if err != nil {
		return err
	}
	defer restore()
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() { // also while an answer is awaited
		select {
		case <-quit:
			end()
		case <-ctx.Done():
		}
	}()
	defer on.Open()()
	ticks := time.NewTicker(o.interval)
	defer ticks.Stop()
	for answered := time.Now(); ; {
		title := title(o.req.By, time.Now(), answered, err)
		on.Show(func(width, height int) []screen.Line { return frame(title, last, width, height) })
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		var resp *yardv1.TopDomainsResponse
		if resp, err = ask(ctx); err == nil {
			last, answered = resp, time.Now()
		}
	}
}

// title is the first line of a frame.
func title(by string, now, answered time.Time, failed error) string {
	text := "yard top, by " + by + ", " + now.Format(command.TimeForm) + "; q ends"
	if failed != nil {
		text += "; the numbers are from " + answered.Format(command.TimeForm) + ": " + command.PlainLine(failed.Error())
	}
	return text
}

// frame is what a terminal shows.
func frame(title string, resp *yardv1.TopDomainsResponse, width, height int) []screen.Line {
	var t command.Table
	fill(&t, resp)
	var text strings.Builder
	_ = t.Write(&text) // a builder takes all
	lines := []screen.Line{{Text: title, Heading: true}}
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		head, _, _ := strings.Cut(line, " ")
		lines = append(lines, screen.Line{Text: line, Heading: slices.Contains(headings, head)})
	}
	return screen.Fit(lines, width, height)
}
