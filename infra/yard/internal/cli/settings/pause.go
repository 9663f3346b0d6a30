package settings

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// stoppable is what may be paused and drained by its name.
type stoppable struct {
	kind, example string
	part          func(name string) yard.Part // nil: it is a domain
}

var (
	stoppableTasklist = stoppable{"tasklist", "mail", yard.OfTasklist}
	stoppableType     = stoppable{"type", "payout.send", yard.OfType}
	stoppableGroup    = stoppable{"group", "acme", yard.OfGroup}
	stoppableDomain   = stoppable{"domain", "shop", nil}
)

// commands returns pause, drain and resume.
func (s stoppable) commands(a *command.App) []*cobra.Command {
	return []*cobra.Command{s.stop(a, pausing), s.stop(a, draining), s.resumeCommand(a)}
}

// call pauses or drains.
func (s stoppable) call(ctx context.Context, c *yard.Client, name string, drain bool, o yard.PauseOptions) (yard.Pause, error) {
	switch {
	case s.part == nil && drain:
		return c.Admin().DrainDomain(ctx, name, o)
	case s.part == nil:
		return c.Admin().PauseDomain(ctx, name, o)
	case drain:
		return c.Drain(ctx, s.part(name), o)
	}
	return c.Pause(ctx, s.part(name), o)
}

func (s stoppable) resume(ctx context.Context, c *yard.Client, name string, drain bool) (yard.Pause, error) {
	switch {
	case s.part == nil:
		return c.Admin().ResumeDomain(ctx, name, drain)
	case drain:
		return c.ResumeDrained(ctx, s.part(name))
	}
	return c.Resume(ctx, s.part(name))
}

// stopping is what the help says of a pause or a drain.
type stopping struct {
	verb, verbs, done, short, long, example string
	drain                                   bool
	answer                                  func(*yardv1.Pause) codec.Message
}

var (
	pausing = stopping{
		"pause", "pauses", "PAUSED", "Pause a %s: none of its tasks starts until it is resumed",
		"Pause a %s: within a second, none of its tasks starts any more. Attempts that\nrun go on, and tasks may be submitted. Pausing again replaces the pause.",
		`--reason "the partner's API is down" --for 1h`,
		false, func(p *yardv1.Pause) codec.Message { return &yardv1.PauseResponse{Pause: p} },
	}
	draining = stopping{
		"drain", "drains", "DRAINED", "Drain a %s: new tasks of it are refused until it is resumed",
		"Drain a %s: within a second, new tasks of it are refused (FAILED_PRECONDITION). What\nwas accepted goes on: it starts, is tried again, and comes back from a delay.\nDraining again replaces the drain. `resume --drain` ends it.",
		`--reason "it moves to another cluster"`,
		true, func(p *yardv1.Pause) codec.Message { return &yardv1.DrainResponse{Drain: p} },
	}
)

// stop is the command that pauses or drains.
func (s stoppable) stop(a *command.App, how stopping) *cobra.Command {
	var o yard.PauseOptions
	cmd := &cobra.Command{
		Use: how.verb + " NAME", Short: fmt.Sprintf(how.short, s.kind), Long: fmt.Sprintf(how.long, s.kind),
		Example: `  yard ` + s.kind + ` ` + how.verb + ` ` + s.example + ` ` + how.example,
		Args:    command.ArgCount(1, 1, "one name"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			p, err := s.call(ctx, c, args[0], how.drain, o)
			if err != nil {
				return err
			}
			w := p.Wire()
			err = a.Show(how.answer(w), func(t *command.Table) {
				t.Row(strings.ToUpper(s.kind), how.done+" SINCE", "UNTIL", "BY", "REASON")
				t.Row(args[0], command.At(w.SinceMs), untilOf(w), command.OrDash(w.By), w.Reason)
			})
			if err == nil {
				noteUnknown(ctx, a, c, s.kind, args[0])
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why, for people")
	command.ByFlag(cmd.Flags(), &o.By, how.verbs+" it")
	command.DurationVar(cmd.Flags(), &o.For, "for", 0, "it ends by itself after this, 1s to 366 days; default: not before it is resumed")
	return cmd
}

func (s stoppable) resumeCommand(a *command.App) *cobra.Command {
	var drain bool
	cmd := &cobra.Command{
		Use: "resume NAME", Short: "End the pause or the drain of a " + s.kind,
		Example: "  yard " + s.kind + " resume " + s.example,
		Args:    command.ArgCount(1, 1, "one name"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			how := pausing
			if drain {
				how = draining
			}
			p, err := s.resume(ctx, c, args[0], drain)
			if err != nil {
				return err
			}
			return a.Show(&yardv1.PauseResponse{Pause: p.Wire()}, func(t *command.Table) {
				t.Row(fmt.Sprintf("%s %s is resumed; it was %s %s", s.kind, args[0], strings.ToLower(how.done), stoppedText(p.Wire())))
			})
		}),
	}
	cmd.Flags().BoolVar(&drain, "drain", false, "end the drain, in place of the pause")
	return cmd
}

// noteUnknown says that a name is used by nothing yet: it may be misspelled. Names exist by being used, so that is no error.
func noteUnknown(ctx context.Context, a *command.App, c *yard.Client, kind, name string) {
	ctx, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	known := true // also if the caller may not ask
	switch kind {
	case "tasklist":
		d, err := c.Wire().DescribeTasklist(ctx, name)
		if err == nil {
			d.Pause, d.Drain = nil, nil
			_, err = c.GetTasklist(ctx, name)
			known = !unused(d) || err == nil
		}
	case "type":
		_, err := c.GetType(ctx, name)
		known = fault.CodeOf(err) != fault.NotFound
	}
	if !known {
		fmt.Fprintf(a.Err, "note: %s %s has no settings and no tasks in domain %s: is the name right?\n", kind, name, a.Domain)
	}
}

// untilOf is when a pause ends.
func untilOf(w *yardv1.Pause) string {
	if w.UntilMs == 0 {
		return "it is resumed"
	}
	return command.At(w.UntilMs)
}

// pauseOf is a pause in one line; empty if there is none.
func pauseOf(w *yardv1.Pause) string {
	if w == nil {
		return ""
	}
	return "since " + command.At(w.SinceMs) + " until " + untilOf(w) + whoseText(w)
}

// stoppedText is a pause that is over, in one line.
func stoppedText(w *yardv1.Pause) string { return "since " + command.At(w.SinceMs) + whoseText(w) }

// whoseText is who paused, and why.
func whoseText(w *yardv1.Pause) (text string) {
	if w.By != "" {
		text += ", by " + w.By
	}
	if w.Reason != "" {
		text += ": " + w.Reason
	}
	return command.PlainLine(text)
}

// pauseHere is that of a tasklist, which may be its domain's.
func pauseHere(w *yardv1.Pause) string {
	if w.GetWholeDomain() {
		return "with the whole domain " + pauseOf(w)
	}
	return pauseOf(w)
}

// pausedUntil is when the pause of something in a list ends, "-" where it is not paused.
func pausedUntil(p *yard.Pause) string {
	if p == nil {
		return "-"
	}
	return "until " + untilOf(p.Wire())
}
