package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/events"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// EventsCommand is `yard events`.
func EventsCommand(a *command.App) *cobra.Command {
	var kinds []string
	var f events.Filter
	var count int
	cmd := &cobra.Command{
		Use: "events", Short: "Print what becomes of tasks as it happens: " + strings.Join(topology.EventNames(), ", "),
		Long: `Print the events of the tasks of the domain, until Ctrl-C. An operator turns events on:
yard domain put NAME --events --late-after 5m --stuck-after 1h. The kinds are:

` + kindsHelp() + `
A line has the time, the kind, the task, its type, tasklist and state, and the error type of its last failure.
The time is when the task ended; of a late task, since when it is due; of a stuck one, when its attempt started.

Events are a hint, and not kept: one that is published while the command does not run is missed, and one may come
twice. "yard task get" has the truth. With --json each line is one event.`,
		Example: `  yard events
  yard events --kind dead --kind late --tasklist mail --json`,
		Args: command.NoArgs,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, _ []string) error {
			for _, k := range kinds {
				f.Kinds = append(f.Kinds, events.Kind(k))
			}
			all, err := events.Listen(ctx, c, f)
			if err != nil {
				return err
			}
			defer all.Close()
			return followEvents(ctx, a, all, count)
		}),
	}
	cmd.Flags().StringArrayVar(&kinds, "kind", nil, "only this kind: "+strings.Join(topology.EventNames(), ", ")+"; may be repeated")
	cmd.Flags().StringVarP(&f.Tasklist, "tasklist", "t", "", "only of this tasklist")
	cmd.Flags().IntVar(&count, "count", 0, "end after so many events; 0 = never")
	return cmd
}

// kindsHelp has a line for each kind of event.
func kindsHelp() string {
	var text strings.Builder
	for _, k := range topology.EventKinds() {
		fmt.Fprintf(&text, "  %-9s %s\n", k.Name, strings.ReplaceAll(k.Means, "`", ""))
	}
	return text.String()
}

// followEvents prints so many events, each as it comes; 0 = until ctx ends.
func followEvents(ctx context.Context, a *command.App, all *events.Listener, count int) error {
	out := tabwriter.NewWriter(a.Out, eventColumn, 0, 2, ' ', 0)
	fmt.Fprintln(a.Err, "listening; Ctrl-C ends. If no event comes: yard domain get", a.Domain, "shows whether the domain has events")
	n := 0
	for e, err := range all.Events(ctx) {
		switch {
		case errors.Is(err, events.ErrMissed):
			fmt.Fprintln(a.Err, "warning:", err)
			continue
		case err != nil:
			return err
		case a.JSON:
			err = a.PrintJSON(&yardv1.DomainEvents{Kind: string(e.Kind), Tasklist: e.Tasklist, Tasks: []*yardv1.DomainEvent{e.Wire()}})
		default:
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", command.At(e.At.UnixMilli()), e.Kind, e.TaskID, e.Type, e.Tasklist, e.State, command.PlainLine(e.ErrorType))
			err = out.Flush()
		}
		if n++; err != nil || n == count {
			return err
		}
	}
	return nil
}

// eventColumn is the least width of a column: lines are printed one at a time.
const eventColumn = 10
