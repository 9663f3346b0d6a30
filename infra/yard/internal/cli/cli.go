// Package cli is the command line of yard: what the commands are called, what they
// take and how they print.
//
// Owns: flags, texts, tables, exit codes. Never does: anything of its own; the
// stack, the demo and the bench are packages, and everything else is a call of the
// Go SDK.
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
	"io"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
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
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// The environment's defaults of the global flags.
const (
	envURL    = "NATS_URL"
	envDomain = "YARD_DOMAIN"
)

// domainDefault is the domain that `yard dev` makes, so that a first try needs no
// setting up.
const domainDefault = "default"

// app is one run of the command.
type app struct {
	Streams
	url    string
	domain string
	// context is the name that was given; resolve takes the one in use where it is empty.
	context string
	// json and wide say how to print; neither = a table.
	json, wide bool
	timeout    time.Duration
	// login is who the command is to NATS; its URL is not used.
	login natsrpc.ConnConfig
	// deny ends the command, since the server refused what it needs.
	deny context.CancelCauseFunc
}

// usageError is an error of the command line.
type usageError struct{ error }

// Unwrap returns what was wrong.
func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Run runs one command line and returns the exit code.
func Run(ctx context.Context, args []string, streams Streams) int {
	ctx, deny := context.WithCancelCause(ctx)
	defer deny(nil)
	a := &app{Streams: streams, deny: deny}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	blind := errors.As(err, new(blindError))
	if cause := context.Cause(ctx); fault.CodeOf(cause) == fault.PermissionDenied {
		err = cause
	}
	if errors.As(err, new(foundError)) {
		return ExitFailed // they are printed
	}
	a.printError(err, advice(cmd, err))
	var usage usageError
	var unfinished *yard.TaskError
	switch {
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &unfinished):
		return ExitUnfinished
	case blind:
		return ExitBlind
	default:
		return ExitFailed
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "yard",
		Short: "Run, try, operate and measure Yardmaster, a durable task engine on NATS",
		Example: `  yard demo                                        # see it work
  yard dev                                         # a whole system in one process
  yard task submit email.send '{"to":"a@b.c"}' --tasklist mail --wait
  yard worker --tasklist mail --exec ./send-mail   # a worker in any language
  yard task list --tasklist mail
  yard tasklist describe mail`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              noArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.resolve(cmd) },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.url, "url", envOr(envURL, nats.DefaultURL), "NATS server, or several separated by commas (environment: "+envURL+")")
	flags.StringVarP(&a.domain, domainFlag, "d", envOr(envDomain, domainDefault), "tenant to act for (environment: "+envDomain+")")
	flags.StringVar(&a.context, "context", envOr(envContext, ""), "context to take server, login and domain from, see yard context (environment: "+envContext+")")
	a.outputFlags(flags)
	durationVar(flags, &a.timeout, "timeout", 10*time.Second, "how long to try")
	a.loginFlags(flags)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		a.demoCommand(), a.devCommand(), a.benchCommand(),
		a.statusCommand(), a.doctorCommand(), a.versionCommand(), a.contextCommand(), a.upgradeCommand(), a.provisionCommand(), a.authCommand(), a.quarantineCommand(), a.serverCommand(),
		a.taskCommand(), a.workerCommand(), a.tasklistCommand(), a.domainCommand(), a.typeCommand(), a.limitCommand(), a.groupCommand(), a.keysCommand(), a.deadCommand(), a.batchCommand(),
	)
	a.completions(root)
	return root
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// group is a command that only holds others.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(below...)
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		for _, cmd.SuggestionsMinimumDistance = range []int{1, 2} { // the nearest first
			if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
				return usagef("unknown command %q: did you mean `%s %s`?", args[0], cmd.CommandPath(), similar[0])
			}
		}
		return usagef("unknown command or argument %q for %q", args[0], cmd.CommandPath())
	}
	return nil
}

// args wants between least and most arguments; most < 0 is any number.
func argCount(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || (most >= 0 && len(args) > most) {
			return usagef("%s wants %s", cmd.CommandPath(), what)
		}
		return nil
	}
}

// client makes the body of a command that calls the engine; it gets a client of the domain.
func (a *app) client(do func(ctx context.Context, c *yard.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error { return do(ctx, c, args) })
	}
}

// withClient runs do with a client of the domain.
func (a *app) withClient(ctx context.Context, do func(ctx context.Context, c *yard.Client) error) error {
	options, err := a.options()
	if err != nil {
		return err
	}
	c, err := yard.Connect(a.url, a.domain, yard.WithTimeout(a.timeout), yard.WithNATSOptions(options...))
	if fault.CodeOf(err) == fault.Unavailable {
		return unreachable(err)
	}
	if err != nil {
		return err
	}
	defer c.Close()
	return do(ctx, c)
}

// unreachable says that NATS is not where it was looked for, or lets no one in who does not log in, and what to do.
func unreachable(err error) error {
	why := err.Error()
	var f *fault.Error
	if errors.As(err, &f) {
		why = f.Message
	}
	if strings.Contains(strings.ToLower(why), nats.AUTHORIZATION_ERR) {
		return fault.New(fault.Unavailable, "%s; the server takes known users only: log in with --nkey or --creds, and with the user's --inbox-prefix", why)
	}
	return fault.New(fault.Unavailable, "%s; `yard dev` starts a system, and --url or NATS_URL names another one", why)
}

// printError writes an error and what to do about it, for a person or, as JSON, for a program.
func (a *app) printError(err error, next string) {
	if a.json {
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
		fmt.Fprintln(a.Err, "error:", plainLine(line))
	}
	if next != "" {
		fmt.Fprintln(a.Err, "next: ", next)
	}
}
