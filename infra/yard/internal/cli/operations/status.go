// Package operations has the commands for who operates a cluster.
package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// services are those a whole system has.
var services = [...]string{"frontend", "matching", "history", "timer"}

// statusQuiet is how long no further process must have answered until all are
// taken to have.
const statusQuiet = 300 * time.Millisecond

// StatusCommand is `yard status`.
func StatusCommand(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the health of every process of the system",
		Long: `Show the health of every process of the system. The exit code is 1 if a service has no process
that is ready. A warning is for what affects all processes alike, such as full storage or
partitions without an owner.`,
		Example: "  yard status --url nats://127.0.0.1:4222",
		Args:    command.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return status(cmd.Context(), a) },
	}
}

func status(ctx context.Context, a *command.App) error {
	nc, err := a.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	answers, err := askHealth(ctx, nc)
	if err != nil {
		return err
	}
	if err := printHealth(a, answers); err != nil {
		return err
	}
	for _, name := range services {
		if !slices.ContainsFunc(answers, func(h process.Answer) bool { return h.Service == name && h.Ready }) {
			return fault.New(fault.Unavailable, "no %s is ready", name)
		}
	}
	return nil
}

// askHealth gathers the answers of all processes.
func askHealth(ctx context.Context, nc *nats.Conn) ([]process.Answer, error) {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	for _, name := range services {
		if err := nc.PublishRequest(topology.Health(name), inbox, nil); err != nil {
			return nil, err
		}
	}
	var answers []process.Answer
	for {
		msg, err := nextMsg(ctx, sub)
		if err != nil {
			break // no one else answers
		}
		var h process.Answer
		if json.Unmarshal(msg.Data, &h) == nil && h.Service != "" { // else: "no responders"
			answers = append(answers, h)
		}
	}
	slices.SortFunc(answers, func(x, y process.Answer) int { return strings.Compare(x.Service+x.Node, y.Service+y.Node) })
	return answers, ctx.Err()
}

func nextMsg(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, statusQuiet)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}

func printHealth(a *command.App, answers []process.Answer) error {
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
