package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// ResultBytesMax bounds the result of a task, as the engine does. Bytes.
const ResultBytesMax = 256 << 10

// Runner runs programs. Its Run is a handler of the SDK's worker.
type Runner struct {
	// Command is a command of the shell: sh -c Command.
	Command string
	// KillAfter is the time between SIGTERM and SIGKILL, and how long a program that has ended may
	// leave its output to others.
	KillAfter time.Duration
	// RetryAfter is when a task is tried again whose program ended with ExitRetryLater.
	RetryAfter time.Duration
	// Log gets what programs write to standard error, and a line for each that ends.
	Log *slog.Logger
}

// Run runs one attempt. It returns when the program and all that it left behind have ended.
func (r *Runner) Run(ctx context.Context, a *yard.Attempt) (yard.Payload, error) {
	log := r.Log.With("task_id", a.TaskID, "type", a.Type, "attempt", a.Number)
	span := trace.SpanContextFromContext(ctx)
	if span.HasTraceID() {
		log = log.With("trace_id", span.TraceID().String())
	}
	out, errs := &capture{max: ResultBytesMax}, &stderr{log: log, left: stderrBytesMax}
	cmd := command(ctx, r.Command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(a.Payload.Data), out, errs
	cmd.Env = append(os.Environ(), environment(a, telemetry.FormatTraceparent(telemetry.FromSpan(span)))...)
	stopped, killAt := false, time.Time{}
	cmd.Cancel = func() error {
		err := terminate(cmd.Process)
		stopped, killAt = err == nil, time.Now().Add(r.KillAfter)
		return err
	}
	cmd.WaitDelay = r.KillAfter
	began := time.Now()
	release, err := start(cmd)
	if err != nil {
		return yard.Payload{}, fmt.Errorf("start the program: %w", err)
	}
	defer release()
	err = cmd.Wait()
	if stopped { // a shell ends at once; what it started may take its time
		awaitGroup(cmd.Process, time.Until(killAt))
	}
	killGroup(cmd.Process)
	reapGroup(cmd.Process)
	errs.flush()
	log = log.With("duration", time.Since(began).Round(time.Millisecond))
	if stopped {
		log.Warn("the program was stopped", "reason", context.Cause(ctx), "status", cmd.ProcessState.String())
		return yard.Payload{}, fmt.Errorf("the program was stopped: %w", context.Cause(ctx))
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		log.Warn("the program ended, but another process held its output and was killed", "duration", r.KillAfter)
		err = nil
	}
	result, err := r.outcomeOf(err, out, errs.last)
	if err != nil {
		log.Warn("the program failed", "error", err)
		return yard.Payload{}, err
	}
	log.Info("the program has completed")
	return result, nil
}

// environment is what a program knows of its task, beside the worker's own environment. A traceparent of the worker is not the task's.
func environment(a *yard.Attempt, traceparent string) []string {
	return []string{
		"TRACEPARENT=" + traceparent,
		"YARD_TASK_ID=" + a.TaskID,
		"YARD_TASK_TYPE=" + a.Type,
		"YARD_ATTEMPT=" + strconv.Itoa(a.Number),
		"YARD_DOMAIN=" + a.Domain,
		"YARD_TASKLIST=" + a.Tasklist,
	}
}
