package cli

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/demo"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

func (a *app) demoCommand() *cobra.Command {
	var f stackFlags
	var opts demo.Options
	var plain bool
	cmd := &cobra.Command{
		Use: "demo", Short: "Watch three tenants at work on a system in this process",
		Long: `Start a whole system in this process, with its data in a temporary folder, and let
three tenants use it: an online shop's order e-mails, image thumbnails that are
really resized, and payouts with a cluster-wide limit and a flaky bank. At the end
it proves that every accepted task was finished exactly once.`,
		Example: `  yard demo
  yard demo --duration 15s --plain
  yard demo --seed 42 --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.Interactive = !plain
			opts.JSON = a.json
			return a.demo(cmd.Context(), f, opts)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.Lookup("log-level").DefValue, f.log.Level = "error", "error" // the view has the terminal
	flags.DurationVar(&opts.Duration, "duration", time.Minute, "how long tasks are handed in")
	flags.Float64Var(&opts.Scale, "scale", 1, "so many times the number of tasks, up to 100")
	flags.Uint64Var(&opts.Seed, "seed", 0, "repeat the tasks of an earlier run; 0 = fresh ones")
	flags.IntVar(&f.cfg.Port, "port", defaultPort, "port for NATS clients; another one if it is taken")
	flags.BoolVar(&plain, "plain", false, "lines of progress instead of the live view")
	return cmd
}

// demo runs the demo on a stack of its own.
func (a *app) demo(ctx context.Context, f stackFlags, opts demo.Options) error {
	log, err := telemetry.NewLogger(f.log, a.Err)
	if err != nil {
		return usageError{err}
	}
	cfg := f.config(log)
	if !free(cfg.Port) {
		cfg.Port = 0
	}
	return onStack(ctx, cfg, func(s *stack.Stack) error {
		opts.Connect, opts.Out, opts.Log, opts.Command = s.Connect, a.Out, log, command()
		if cfg.Port != defaultPort {
			opts.URL = s.URL
		}
		return demo.Run(ctx, opts)
	})
}

// free tells whether a port can be listened on just now.
func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// command is what a person types to run this program.
func command() string {
	if self, err := os.Executable(); err == nil && strings.Contains(self, "go-build") {
		return "go run ./infra/yard"
	}
	return "yard"
}

// onStack runs do on a stack that is closed afterwards.
func onStack(ctx context.Context, cfg stack.Config, do func(*stack.Stack) error) error {
	s, err := stack.Start(ctx, cfg)
	if err != nil {
		return startError(ctx, err)
	}
	err = do(s)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stackStopTimeout)
	defer cancel()
	return errors.Join(err, s.Close(stopping))
}
