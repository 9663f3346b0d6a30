package cli

import (
	"cmp"
	"context"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func (a *app) tasklistPause() *cobra.Command {
	return a.pauseCommand("tasklist", "mail", (*yard.Client).PauseTasklist, func(p *yardv1.Pause) codec.Message { return &yardv1.PauseTasklistResponse{Pause: p} })
}

func (a *app) tasklistResume() *cobra.Command {
	return a.resumeCommand("tasklist", "mail", (*yard.Client).ResumeTasklist, func(p *yardv1.Pause) codec.Message { return &yardv1.ResumeTasklistResponse{Pause: p} })
}

func (a *app) typePause() *cobra.Command {
	return a.pauseCommand("type", "payout.send", (*yard.Client).PauseType, func(p *yardv1.Pause) codec.Message { return &yardv1.PauseTypeResponse{Pause: p} })
}

func (a *app) typeResume() *cobra.Command {
	return a.resumeCommand("type", "payout.send", (*yard.Client).ResumeType, func(p *yardv1.Pause) codec.Message { return &yardv1.ResumeTypeResponse{Pause: p} })
}

// pauseCommand pauses a tasklist or a type. What it answers with --json is the API's.
func (a *app) pauseCommand(kind, example string, pause func(*yard.Client, context.Context, string, yard.PauseOptions) (yard.Pause, error), answer func(*yardv1.Pause) codec.Message) *cobra.Command {
	var o yard.PauseOptions
	cmd := &cobra.Command{
		Use: "pause NAME", Short: "Pause a " + kind + ": none of its tasks starts until it is resumed",
		Long: `Pause a ` + kind + `: within a second, none of its tasks starts any more. What runs
already goes on, and tasks may be submitted. Pausing again replaces the pause.`,
		Example: `  yard ` + kind + ` pause ` + example + ` --reason "the partner's API is down" --for 1h`,
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("by") {
				o.By = userName()
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				p, err := pause(c, ctx, args[0], o)
				if err != nil {
					return err
				}
				return a.printPause(kind, args[0], p, answer)
			})
		},
	}
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why, for people")
	cmd.Flags().StringVar(&o.By, "by", "", "who pauses it, for people; default the user of this system")
	cmd.Flags().DurationVar(&o.For, "for", 0, "it ends by itself after this, 1s to 366 days; default: not before it is resumed")
	return cmd
}

func (a *app) resumeCommand(kind, example string, resume func(*yard.Client, context.Context, string) (yard.Pause, error), answer func(*yardv1.Pause) codec.Message) *cobra.Command {
	return &cobra.Command{
		Use: "resume NAME", Short: "End the pause of a " + kind,
		Example: "  yard " + kind + " resume " + example,
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				p, err := resume(c, ctx, args[0])
				if err != nil {
					return err
				}
				return a.printPause(kind, args[0], p, answer)
			})
		},
	}
}

// pauserBytesMax is how long the engine takes the name of who pauses to be.
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

func (a *app) printPause(kind, name string, p yard.Pause, answer func(*yardv1.Pause) codec.Message) error {
	w := wirePause(&p)
	if a.json {
		return a.printJSON(answer(w))
	}
	var t table
	t.row(strings.ToUpper(kind), "PAUSED SINCE", "UNTIL", "BY", "REASON")
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
	return text
}

// pausedUntil is when the pause of something in a list ends, "-" where it is not paused.
func pausedUntil(p *yard.Pause) string {
	if p == nil {
		return "-"
	}
	return "until " + untilOf(wirePause(p))
}
