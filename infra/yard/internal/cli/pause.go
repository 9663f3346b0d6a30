package cli

import (
	"cmp"
	"context"
	"fmt"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// part is what can be paused, drained and purged by its name.
type part struct {
	kind, example string
	of            func(name string) yard.Part
}

var (
	tasklistPart = part{"tasklist", "mail", yard.OfTasklist}
	typePart     = part{"type", "payout.send", yard.OfType}
	groupPart    = part{"group", "acme", yard.OfGroup}
)

// stopCommands are pause, drain and resume.
func (a *app) stopCommands(p part) []*cobra.Command {
	return []*cobra.Command{
		a.stopCommand(pausing, p, (*yard.Client).Pause, func(w *yardv1.Pause) codec.Message { return &yardv1.PauseResponse{Pause: w} }),
		a.stopCommand(draining, p, (*yard.Client).Drain, func(w *yardv1.Pause) codec.Message { return &yardv1.DrainResponse{Drain: w} }),
		a.resumeCommand(p),
	}
}

// stopping is what the help says of a pause or a drain.
type stopping struct{ verb, verbs, done, short, long, example string }

var (
	pausing = stopping{
		"pause", "pauses", "PAUSED", "Pause a %s: none of its tasks starts until it is resumed",
		"Pause a %s: within a second, none of its tasks starts any more. What runs\nalready goes on, and tasks may be submitted. Pausing again replaces the pause.",
		`--reason "the partner's API is down" --for 1h`,
	}
	draining = stopping{
		"drain", "drains", "DRAINED", "Drain a %s: new tasks of it are refused until it is resumed",
		"Drain a %s: within a second, new tasks of it are refused (FAILED_PRECONDITION). What\nwas accepted goes on: it starts, is tried again, and comes back from a delay.\nDraining again replaces the drain. `resume --drain` ends it.",
		`--reason "it moves to another cluster"`,
	}
)

// stopCommand pauses or drains a tasklist, a type or a group. What it answers with --json is the API's.
func (a *app) stopCommand(how stopping, of part, stop func(*yard.Client, context.Context, yard.Part, yard.PauseOptions) (yard.Pause, error), answer func(*yardv1.Pause) codec.Message) *cobra.Command {
	var o yard.PauseOptions
	kind := of.kind
	cmd := &cobra.Command{
		Use: how.verb + " NAME", Short: fmt.Sprintf(how.short, kind), Long: fmt.Sprintf(how.long, kind),
		Example: `  yard ` + kind + ` ` + how.verb + ` ` + of.example + ` ` + how.example,
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("by") {
				o.By = userName()
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				p, err := stop(c, ctx, of.of(args[0]), o)
				if err != nil {
					return err
				}
				if err := a.printStop(how, kind, args[0], p, answer); err != nil {
					return err
				}
				a.noteUnknown(ctx, c, kind, args[0])
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why, for people")
	cmd.Flags().StringVar(&o.By, "by", "", "who "+how.verbs+" it, for people; default the user of this system")
	durationVar(cmd.Flags(), &o.For, "for", 0, "it ends by itself after this, 1s to 366 days; default: not before it is resumed")
	return cmd
}

func (a *app) resumeCommand(of part) *cobra.Command {
	var drain bool
	kind := of.kind
	cmd := &cobra.Command{
		Use: "resume NAME", Short: "End the pause or the drain of a " + kind,
		Example: "  yard " + kind + " resume " + of.example,
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			how, end := pausing, (*yard.Client).Resume
			if drain {
				how, end = draining, (*yard.Client).ResumeDrained
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				p, err := end(c, ctx, of.of(args[0]))
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(&yardv1.PauseResponse{Pause: wirePause(&p)})
				}
				_, err = fmt.Fprintf(a.Out, "%s %s is resumed; it was %s %s\n", kind, args[0], strings.ToLower(how.done), pauseOf(wirePause(&p)))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&drain, "drain", false, "end the drain, in place of the pause")
	return cmd
}

// noteUnknown says that a name is used by nothing yet: it may be misspelled. Names exist by being used, so that is no error.
func (a *app) noteUnknown(ctx context.Context, c *yard.Client, kind, name string) {
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
		fmt.Fprintf(a.Err, "note: %s %s has no settings and no tasks in domain %s: is the name right?\n", kind, name, a.domain)
	}
}

// pauserBytesMax is how long the engine takes the name of who pauses or drains to be.
const pauserBytesMax = 128

// userName is the user of this system, "" where it is not known.
func userName() string {
	u, err := user.Current()
	if err != nil || len(u.Username) > pauserBytesMax {
		return ""
	}
	return u.Username
}

// wirePause is a pause as the API writes it; none where there is none.
func wirePause(p *yard.Pause) *yardv1.Pause {
	if p == nil {
		return nil
	}
	w := &yardv1.Pause{Reason: p.Reason, By: p.By, SinceMs: p.Since.UnixMilli()}
	if !p.Until.IsZero() {
		w.UntilMs = p.Until.UnixMilli()
	}
	return w
}

func (a *app) printStop(how stopping, kind, name string, p yard.Pause, answer func(*yardv1.Pause) codec.Message) error {
	w := wirePause(&p)
	if a.json {
		return a.printJSON(answer(w))
	}
	var t table
	t.row(strings.ToUpper(kind), how.done+" SINCE", "UNTIL", "BY", "REASON")
	t.row(name, at(w.SinceMs), untilOf(w), cmp.Or(w.By, "-"), w.Reason)
	return a.printTable(&t)
}

// untilOf is when a pause ends.
func untilOf(w *yardv1.Pause) string {
	if w.UntilMs == 0 {
		return "it is resumed"
	}
	return at(w.UntilMs)
}

// pauseOf is a pause in one line.
func pauseOf(w *yardv1.Pause) string {
	text := "since " + at(w.SinceMs) + " until " + untilOf(w)
	if w.By != "" {
		text += ", by " + w.By
	}
	if w.Reason != "" {
		text += ": " + w.Reason
	}
	return plainLine(text)
}

// pausedUntil is when the pause of something in a list ends, "-" where it is not paused.
func pausedUntil(p *yard.Pause) string {
	if p == nil {
		return "-"
	}
	return "until " + untilOf(wirePause(p))
}
