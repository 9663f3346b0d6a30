// Package command is what all commands of yard share.
//
// Owns: the connection and the context of a run, how answers are printed, the values of flags. Never does: know a command.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// Streams is where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// App is one run of the command.
type App struct {
	Streams
	URL    string
	Domain string
	// Context is the name that was given; Resolve takes the one in use where it is empty.
	Context string
	// JSON and Wide say how to print; neither = a table.
	JSON, Wide bool
	Timeout    time.Duration
	// CodecURL is where a codec server encodes and decodes what tasks carry; "" = nowhere.
	CodecURL string
	// Login is who the command is to NATS; its URL is not used.
	Login natsrpc.ConnConfig
	// Deny ends the command, since the server refused what it needs.
	Deny context.CancelCauseFunc
}

// UsageError is an error of the command line.
type UsageError struct{ error }

// Unwrap returns what was wrong.
func (e UsageError) Unwrap() error { return e.error }

// Usagef is an error of the command line.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Group is a command that only holds others.
func Group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(below...)
	return cmd
}

// NoArgs refuses arguments, and suggests the command that may be meant.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		for _, cmd.SuggestionsMinimumDistance = range []int{1, 2} { // the nearest first
			if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
				return Usagef("unknown command %q: did you mean `%s %s`?", args[0], cmd.CommandPath(), similar[0])
			}
		}
		return Usagef("unknown command or argument %q for %q", args[0], cmd.CommandPath())
	}
	return nil
}

// ArgCount wants between least and most arguments; most < 0 is any number.
func ArgCount(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || (most >= 0 && len(args) > most) {
			return Usagef("%s wants %s", cmd.CommandPath(), what)
		}
		return nil
	}
}

// Client makes the body of a command that calls the engine; it gets a client of the domain.
func (a *App) Client(do func(ctx context.Context, c *yard.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error { return do(ctx, c, args) })
	}
}

// WithClient runs do with a client of the domain.
func (a *App) WithClient(ctx context.Context, do func(ctx context.Context, c *yard.Client) error, more ...yard.ClientOption) error {
	options, err := a.options()
	if err != nil {
		return err
	}
	c, err := yard.Connect(a.URL, a.Domain, append(more, yard.WithTimeout(a.Timeout), yard.WithNATSOptions(options...), yard.WithCodec(a.Codec()))...)
	if fault.CodeOf(err) == fault.Unavailable {
		return unreachable(err)
	}
	if err != nil {
		return err
	}
	defer c.Close()
	return do(ctx, c)
}

// Codec is that of the codec server; nil = there is none.
func (a *App) Codec() coded.Codec {
	if a.CodecURL == "" {
		return nil
	}
	return coded.Remote(a.CodecURL, nil)
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

// JetStream makes the body of a command of an operator, which reads or changes what is stored.
func (a *App) JetStream(do func(ctx context.Context, js jetstream.JetStream, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.WithJetStream(cmd.Context(), func(ctx context.Context, js jetstream.JetStream) error { return do(ctx, js, args) })
	}
}

// WithJetStream runs do with a connection of an operator, for as long as --timeout.
func (a *App) WithJetStream(ctx context.Context, do func(ctx context.Context, js jetstream.JetStream) error) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	nc, err := a.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	err = do(ctx, js)
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return fault.New(fault.FailedPrecondition, "there is no cluster of this version on this server: %v", err)
	}
	return err
}
