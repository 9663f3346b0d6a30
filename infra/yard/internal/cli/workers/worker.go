// Package workers has the commands that run, list, drain and stop workers.
package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/program"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

const (
	// probeType is a type that no one uses: a poll for it tells whether polls are answered.
	probeType = "yard.worker.probe"
	// killSlack is how long after SIGKILL an attempt may still take to be handed back.
	killSlack = 2 * time.Second
	// killAfterMax bounds --kill-after.
	killAfterMax = 10 * time.Minute
	// weightMax bounds a weight of a tasklist.
	weightMax = 1000
	// identityBytesMax and versionBytesMax bound what a worker says of itself.
	identityBytesMax, versionBytesMax = 128, 64
)

// workerFlags is what `worker` takes.
type workerFlags struct {
	run         program.Runner
	tasklists   []string
	weights     map[string]int
	types       []string
	concurrency int
	drain       time.Duration
	identity    string
	version     string
	log         telemetry.LogConfig
}

// WorkerCommand is `yard worker`.
func WorkerCommand(a *command.App) *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use: "worker --exec COMMAND --tasklist TASKLIST", Short: "Run the tasks of tasklists, each with a shell command",
		Long: fmt.Sprintf(`Run the tasks of one or several tasklists, each in its own process: sh -c COMMAND.

  input     the payload: JSON text, or bytes as submitted; empty without a payload
  output    the result, up to %d KiB: a JSON value unchanged, other text as a JSON string without its
            last line break, other bytes unchanged; empty is no result
  errors    standard error goes to the log, up to 64 KiB; its last line is the message of
            the failure
  variables YARD_TASK_ID, YARD_TASK_TYPE, YARD_ATTEMPT, YARD_DOMAIN, YARD_TASKLIST, TRACEPARENT (the
            W3C trace context of the run, empty if the task has no trace), and the worker's own

The exit code decides:

  0         completed
  %d        dead letter at once: another attempt would not help (EX_DATAERR)
  %d        failed; tried again after --retry-after (EX_TEMPFAIL)
  others    failed; the task's retry policy says whether and when it is tried again

The worker sends heartbeats while the command runs. If the attempt times out (--start-to-close
of the task or its type), or its task is cancelled, the command and all processes that it started get
SIGTERM, and SIGKILL after --kill-after; the exit code is then ignored. Processes that it leaves
running when it ends are killed too.

Several tasklists share --concurrency. While several have work, their tasks are run in the ratio of
their weights, as in --tasklist mail=4,sms=1; a tasklist without one has weight 1. A tasklist without
work keeps one command's place free. If that is more than an eighth of --concurrency and the others are
busy, those without work are polled in turn, for 100 ms each.

SIGTERM or Ctrl-C drains the worker: it takes no more tasks, and waits for its commands. Those
that still run after --drain-timeout are stopped, and their tasks are handed back, without a failure.
"yard worker stop" does the same from afar, and the exit code is 0, too.

If OTEL_EXPORTER_OTLP_ENDPOINT names a collector, each run is a span "run" of the trace of its task.`,
			program.ResultBytesMax>>10, program.ExitBadData, program.ExitRetryLater),
		Example: `  yard worker --tasklist mail --exec 'jq -r .to | xargs ./send-mail' --concurrency 4
  yard worker -t thumbnails --type image.resize --type image.crop --exec ./resize.sh
  yard worker -t mail -t sms --exec ./send.sh --concurrency 8
  yard worker -t mail=4,sms=1 --exec ./send.sh
  yard worker -t reports --exec 'python3 report.py' --kill-after 30s --drain-timeout 5m`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			log, err := telemetry.NewLogger(f.log, a.Err)
			if err != nil {
				return command.Usagef("%w", err)
			}
			return trace(cmd.Context(), a, f, log)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.run.Command, "exec", "e", "", "shell command that runs one task; required")
	flags.StringSliceVarP(&f.tasklists, "tasklist", "t", nil, "tasklist to take tasks from, or TASKLIST=WEIGHT; required, and may be repeated, up to 100")
	flags.StringSliceVar(&f.types, "type", nil, "only tasks of these types; default all")
	flags.IntVarP(&f.concurrency, "concurrency", "c", 1, "commands that run at once, 1 to 100000")
	command.DurationVar(flags, &f.run.KillAfter, "kill-after", 5*time.Second, "time between SIGTERM and SIGKILL, up to 10m")
	command.DurationVar(flags, &f.run.RetryAfter, "retry-after", time.Minute, fmt.Sprintf("pause before a task is tried again if its command exits with %d, 1ms to 720h", program.ExitRetryLater))
	command.DurationVar(flags, &f.drain, "drain-timeout", 30*time.Second, "how long running commands may continue when the worker stops")
	flags.StringVar(&f.identity, "identity", "", "name of the worker for people, up to 128 bytes; default host and process id")
	flags.StringVar(&f.version, "version-label", "", "version of the command for people, up to 64 bytes; default that of yard")
	flags.StringVar(&f.log.Level, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.log.Format, "log-format", "text", "text or json")
	cmd.AddCommand(workerList(a), workerDrain(a), workerStop(a), workerResume(a))
	return cmd
}

func (f *workerFlags) check() error {
	if err := f.weigh(); err != nil {
		return err
	}
	switch {
	case f.run.Command == "":
		return command.Usagef("--exec is required: the command that runs one task")
	case len(f.tasklists) == 0:
		return command.Usagef("--tasklist is required")
	case len(f.identity) > identityBytesMax:
		return command.Usagef("--identity has %d bytes, more than %d", len(f.identity), identityBytesMax)
	case len(f.version) > versionBytesMax:
		return command.Usagef("--version-label has %d bytes, more than %d", len(f.version), versionBytesMax)
	case f.run.KillAfter <= 0 || f.run.KillAfter > killAfterMax:
		return command.Usagef("--kill-after %v is not in 1ns..%v", f.run.KillAfter, killAfterMax)
	case f.run.RetryAfter < time.Millisecond || f.run.RetryAfter > 30*24*time.Hour:
		return command.Usagef("--retry-after %v is not in 1ms..720h", f.run.RetryAfter)
	}
	return nil
}

// weigh takes the weights off the tasklists' names.
func (f *workerFlags) weigh() error {
	for i, one := range f.tasklists {
		name, text, ok := strings.Cut(one, "=")
		if !ok {
			continue
		}
		weight, err := strconv.Atoi(text)
		if err != nil || weight < 1 || weight > weightMax {
			return command.Usagef("--tasklist %s: the weight is not in 1..%d", one, weightMax)
		}
		if f.weights == nil {
			f.weights = map[string]int{}
		}
		f.tasklists[i], f.weights[name] = name, weight
	}
	return nil
}

// name is the worker's for people.
func (f *workerFlags) name() string {
	if f.identity != "" {
		return f.identity
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%.100s-%d", host, os.Getpid())
}

// trace runs a worker whose runs are spans, if the environment names a collector.
func trace(ctx context.Context, a *command.App, f workerFlags, log *slog.Logger) error {
	tracing, err := telemetry.NewTracing(ctx, "yard-worker", f.name(), nil)
	if err != nil {
		return command.Usagef("%w", err)
	}
	err = a.WithClient(ctx, func(ctx context.Context, c *yard.Client) error {
		return work(ctx, a, c, f, log)
	}, yard.WithTracerProvider(tracing.Provider()))
	if lost := tracing.Shutdown(ctx); lost != nil {
		log.Warn("tracing did not end well", "error", lost)
	}
	return err
}

// work runs a worker until ctx ends and its commands have.
func work(ctx context.Context, a *command.App, c *yard.Client, f workerFlags, log *slog.Logger) error {
	for _, tasklist := range f.tasklists {
		if err := probe(ctx, c, tasklist, f.name()); err != nil {
			return err
		}
	}
	f.run.Log = log
	options := []yard.WorkerOption{
		yard.WithConcurrency(f.concurrency), yard.WithDrainTimeout(f.drain), yard.WithStopGrace(f.run.KillAfter + killSlack), yard.WithLogger(log),
		yard.WithTasklists(f.tasklists[1:]...), yard.WithWeights(f.weights), yard.WithIdentity(f.name()),
	}
	if f.version != "" {
		options = append(options, yard.WithVersion(f.version))
	}
	w := yard.NewWorker(c, f.tasklists[0], options...)
	for _, name := range f.types {
		w.HandleFunc(name, f.run.Run)
	}
	if len(f.types) == 0 {
		w.HandleRest(f.run.Run)
	}
	log.Info("the worker is ready", "domain", c.Domain(), "tasklist", strings.Join(f.tasklists, ","), "concurrency", f.concurrency)
	err := w.Run(ctx)
	if fault.CodeOf(err) == fault.InvalidArgument {
		return command.Usagef("%w", err)
	}
	if err == nil && ctx.Err() != nil {
		log.Info("the worker has stopped")
	}
	var left *yard.DrainError
	if stopped := new(yard.StoppedError); errors.As(err, &stopped) && !errors.As(err, &left) {
		log.Info(stopped.Error())
		return nil // as at SIGTERM, so that a supervisor that restarts what fails leaves it
	}
	return err
}

// probe returns an error if polls are refused, as those for a domain that does not exist: a worker would
// ask on forever, in case it is created. It has the worker's name, so that both are one poller.
func probe(ctx context.Context, c *yard.Client, tasklist, worker string) error {
	tasks, err := c.Wire().Poll(ctx, &yardv1.PollRequest{Tasklist: tasklist, MaxTasks: 1, Types: []string{probeType}, Worker: worker})
	if err != nil && !fault.CodeOf(err).Retryable() {
		return err
	}
	var back []*yardv1.Failure
	for _, t := range tasks {
		back = append(back, &yardv1.Failure{TaskId: t.TaskId, Token: t.Token, Message: "no worker runs tasks of this type", NotStarted: true})
	}
	if len(back) == 0 {
		return nil
	}
	_, err = c.Wire().Fail(ctx, back)
	return err
}
