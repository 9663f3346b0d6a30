// Package cli is the command line of yard: what the commands are called, what they
// take and how they print.
//
// Owns: the tree of commands, completion, advice, exit codes. The commands are in packages by subject, and share package command.
// Never does: anything of its own; the stack, the demo and the bench are packages, and everything else is a call of the Go SDK.
//
// On failure: the error goes to standard error, with its code and the path of the
// field at fault where the engine named them, as JSON with --json, and the exit
// code tells its kind.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/audit"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/local"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/operations"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/relay"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/schedules"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/settings"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/tasks"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/timers"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/top"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/workers"
)

// Exit codes.
const (
	// ExitOK: done.
	ExitOK = 0
	// ExitFailed: the engine or the machine refused, or could not be reached.
	ExitFailed = 1
	// ExitUsage: the command line itself is wrong.
	ExitUsage = 2
	// ExitUnfinished: the task that was waited for ended dead or cancelled.
	ExitUnfinished = 3
	// ExitBlind: `yard doctor` could not look; if it found something, it is ExitFailed.
	ExitBlind = 4
)

// Streams is where a command reads and writes.
type Streams = command.Streams

// Run runs one command line and returns the exit code.
func Run(ctx context.Context, args []string, streams Streams) int {
	ctx, deny := context.WithCancelCause(ctx)
	defer deny(nil)
	a := &command.App{Streams: streams, Deny: deny}
	root := root(a)
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	cmd, err := root.ExecuteContextC(audit.By(ctx, command.UserName()))
	if err == nil {
		return ExitOK
	}
	blind := errors.As(err, new(operations.BlindError))
	if cause := context.Cause(ctx); fault.CodeOf(cause) == fault.PermissionDenied {
		err = cause
	}
	if errors.Is(err, operations.ErrFound) {
		return ExitFailed // they are printed
	}
	printError(a, err, advice(cmd, err))
	switch {
	case errors.As(err, new(command.UsageError)):
		return ExitUsage
	case errors.As(err, new(*yard.TaskError)):
		return ExitUnfinished
	case blind:
		return ExitBlind
	default:
		return ExitFailed
	}
}

func root(a *command.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "yard",
		Short: "Run, try, operate and measure Yardmaster, a durable task engine on NATS",
		Example: `  yard demo                                        # see it work
  yard dev                                         # a whole system in one process
  yard top                                         # what all domains do and have, live
  yard console                                     # web pages that show what waits where, and why
  yard task submit email.send '{"to":"a@b.c"}' --tasklist mail --wait
  yard worker --tasklist mail --exec ./send-mail   # a worker in any language
  yard task list --tasklist mail
  yard tasklist describe mail`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              command.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.Resolve(cmd) },
	}
	a.Flags(root.PersistentFlags())
	root.SetFlagErrorFunc(command.FlagError)
	root.AddCommand(
		local.DemoCommand(a), local.DevCommand(a), local.BenchCommand(a), local.ConsoleCommand(a),
		top.Command(a), operations.StatusCommand(a), operations.AuditCommand(a), operations.DoctorCommand(a), operations.VersionCommand(a), operations.ContextCommand(a), operations.UpgradeCommand(a), operations.ProvisionCommand(a), operations.BackupCommand(a), operations.AuthCommand(a), operations.QuarantineCommand(a), operations.ClusterCommand(a), local.ServerCommand(a),
		tasks.TaskCommand(a), workers.WorkerCommand(a), settings.TasklistCommand(a), settings.DomainCommand(a), settings.TypeCommand(a), settings.LimitCommand(a), settings.GroupCommand(a), tasks.KeysCommand(a), tasks.DeadCommand(a), tasks.EventsCommand(a), tasks.BatchCommand(a), schedules.Command(a), timers.Command(a), relay.Command(a),
	)
	completions(a, root)
	visit(root, func(cmd *cobra.Command) {
		if cmd.Name() == "get" {
			cmd.Aliases = []string{"show"}
		}
	})
	return root
}

// printError writes an error and what to do about it, for a person or, as JSON, for a program.
func printError(a *command.App, err error, next string) {
	if a.JSON {
		body := struct {
			Error any    `json:"error"`
			Next  string `json:"next,omitempty"`
		}{Next: next}
		var f *fault.Error
		if errors.As(err, &f) {
			body.Error = f
		} else {
			body.Error = map[string]string{"message": err.Error()}
		}
		if text, failed := json.Marshal(body); failed == nil {
			fmt.Fprintln(a.Err, string(text))
			return
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintln(a.Err, "error:", command.PlainLine(line))
	}
	if next != "" {
		fmt.Fprintln(a.Err, "next: ", next)
	}
}
