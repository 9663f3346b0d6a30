// Package operations has the commands for who operates a cluster.
package operations

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/health"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// StatusCommand is `yard status`.
func StatusCommand(a *command.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show the health of every process of the system, and who serves which partitions",
		Long: `Show the health of every process of the system, and how many of its partitions are served. The exit code
is 1 if a service has no process that is ready. A warning is for what affects all processes alike, such
as full storage or partitions without an owner. With --all each partition is listed, with its owner and
since when it serves it; those of history with when their state was saved last, and how much of the log a
takeover would read.`,
		Example: `  yard status --url nats://127.0.0.1:4222
  yard status --all`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return status(cmd.Context(), a, all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "each partition with its owner")
	return cmd
}

func status(ctx context.Context, a *command.App, all bool) error {
	nc, err := a.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	answers, err := health.Ask(ctx, nc)
	if err != nil {
		return err
	}
	if err := printHealth(a, answers, all); err != nil {
		return err
	}
	for _, name := range health.Services() {
		if !slices.ContainsFunc(answers, func(h process.Answer) bool { return h.Service == name && h.Ready }) {
			return fault.New(fault.Unavailable, "no %s is ready", name)
		}
	}
	return nil
}

func printHealth(a *command.App, answers []process.Answer, all bool) error {
	return a.Show(map[string]any{"processes": answers}, func(t *command.Table) {
		t.Row("SERVICE", "NODE", "READY", "CLOCK", "", command.Wide{"CHECKS"})
		for _, h := range answers {
			var wrong, checks []string
			for _, c := range h.Checks {
				checks = append(checks, c.Name)
				switch {
				case c.OK:
				case c.Warning:
					wrong = append(wrong, fmt.Sprintf("warning: %s: %s", c.Name, c.Error))
				default:
					wrong = append(wrong, fmt.Sprintf("%s: %s", c.Name, c.Error))
				}
			}
			t.Row(h.Service, h.Node, h.Ready, skew(h), strings.Join(wrong, "; "), command.Wide{strings.Join(checks, ", ")})
		}
		printPartitions(t, answers, all)
	})
}

// skew is what people read of the clock, such as "+1m0.2s".
func skew(h process.Answer) string {
	if h.Clock == nil {
		return "-"
	}
	d := time.Duration(h.Clock.SkewMs * float64(time.Millisecond)).Round(time.Millisecond)
	if d >= 0 {
		return "+" + d.String()
	}
	return d.String()
}
