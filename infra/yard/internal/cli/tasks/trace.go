package tasks

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/jaeger"
)

const (
	envJaeger     = "YARD_JAEGER"
	jaegerDefault = "http://127.0.0.1:16686"
	// barWidth is how many characters the time of a whole trace takes.
	barWidth = 40
	// indentMax is up to which depth a span is indented.
	indentMax = 20
)

// taskTrace is `yard task trace`.
func taskTrace(a *command.App) *cobra.Command {
	var address string
	var all bool
	cmd := &cobra.Command{
		Use: "trace TASK", Short: "Draw the trace of a task: each step with its time, as Jaeger has it",
		Long: `Draw the trace of a task: each step with its offset from the first one, its duration, its service, and the reason of
a wait or of a failure. Jaeger has the spans, a moment after they end; --jaeger names the address of its query API.

A task that is not sampled has spans of its failed attempts only. The tasks of one submit may share a trace: the spans
of the others are left out without --all.`,
		Example: `  yard task trace 06gzvkw0fc003ewx4bxvk83r20
  yard task trace 06gzvkw0fc003ewx4bxvk83r20 --jaeger http://jaeger.example:16686 --json`,
		Args: command.ArgCount(1, 1, "one task id"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			server, err := jaeger.At(address)
			if err != nil {
				return command.Usagef("--jaeger %s: %w", address, err)
			}
			task, err := c.Wire().Get(ctx, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, a.Timeout)
			defer cancel()
			t, err := traceOf(ctx, server, task)
			if err != nil {
				return err
			}
			if !all {
				t.leaveOutOthers()
			}
			return a.Show(t, t.print)
		}),
	}
	cmd.Flags().StringVar(&address, "jaeger", cmp.Or(os.Getenv(envJaeger), jaegerDefault), "address of the query API of Jaeger (environment: "+envJaeger+")")
	cmd.Flags().BoolVar(&all, "all", false, "the spans of other tasks in the same trace, too")
	return cmd
}

// taskSpans is the trace of a task.
type taskSpans struct {
	TaskID  string        `json:"task_id"`
	TraceID string        `json:"trace_id"`
	Spans   []jaeger.Span `json:"spans"`
	// Others is how many spans of other tasks were left out.
	Others int `json:"others,omitempty"`
}

// traceOf reads the trace of a task. If its submit had no trace context, failed attempts are in the trace with its id.
func traceOf(ctx context.Context, server jaeger.Server, task *yardv1.Task) (*taskSpans, error) {
	t := &taskSpans{TaskID: task.TaskId}
	sampled := false
	if fields := strings.Split(task.Traceparent, "-"); len(fields) == 4 {
		t.TraceID, sampled = fields[1], strings.HasSuffix(fields[3], "1")
	} else {
		id, err := ids.ParseTaskID(task.TaskId)
		if err != nil {
			return nil, err
		}
		t.TraceID = hex.EncodeToString(id[:])
	}
	var err error
	t.Spans, err = server.Trace(ctx, t.TraceID)
	switch {
	case fault.CodeOf(err) == fault.Unavailable:
		return nil, fault.New(fault.Unavailable, "%v; --jaeger or %s names another one", message(err), envJaeger)
	case fault.CodeOf(err) == fault.NotFound && !sampled:
		return nil, fault.New(fault.NotFound, "%v: the task is not sampled, so only its failed attempts are in a trace; `yard task get` shows its steps", message(err))
	case fault.CodeOf(err) == fault.NotFound:
		return nil, fault.New(fault.NotFound, "%v: it has not come yet, Jaeger has deleted it, or it is in another one (--jaeger)", message(err))
	}
	return t, err
}

// message is an error without its code.
func message(err error) string { return fault.From(err).Message }

// leaveOutOthers leaves out the spans of other tasks, but for those that have a span of the task below them.
func (t *taskSpans) leaveOutOthers() {
	needed := map[string]bool{}
	var own []jaeger.Span
	for i := len(t.Spans) - 1; i >= 0; i-- { // a span is above those that hang under it
		s := t.Spans[i]
		of := s.Attributes[signals.SpanPrefix+signals.TaskID]
		if of != "" && of != t.TaskID && !needed[s.ID] {
			t.Others++
			continue
		}
		needed[s.Parent] = true
		own = append(own, s)
	}
	for i := range own {
		t.Spans[i] = own[len(own)-1-i]
	}
	t.Spans = t.Spans[:len(own)]
}

// print draws the spans: a line each, with a bar.
func (t *taskSpans) print(out *command.Table) {
	if len(t.Spans) == 0 {
		out.Row(fmt.Sprintf("The trace %s has no span of this task; --all shows the %d spans of others.", t.TraceID, t.Others))
		return
	}
	began, ended := t.Spans[0].Start, t.Spans[0].End()
	for _, s := range t.Spans {
		if s.Start.Before(began) {
			began = s.Start
		}
		if s.End().After(ended) {
			ended = s.End()
		}
	}
	whole := ended.Sub(began)
	out.Row("task", t.TaskID)
	out.Row("trace", t.TraceID)
	out.Row("began", began.Format(command.TimeForm))
	out.Row("lasted", short(whole))
	spans := fmt.Sprint(len(t.Spans))
	if t.Others > 0 {
		spans += fmt.Sprintf(", and %d of other tasks: see --all", t.Others)
	}
	out.Row("spans", spans)
	out.Row()
	out.Row("OFFSET", "DURATION", "SERVICE", "SPAN", "TIMELINE", "REASON")
	for _, s := range t.Spans {
		why := s.Attributes[signals.SpanPrefix+signals.Reason]
		if s.Error != "" {
			why = strings.TrimSpace("error: " + s.Error + " " + why)
		}
		offset, lasted := s.Start.Sub(began), s.End().Sub(s.Start)
		out.Row(short(offset), short(lasted), s.Service, strings.Repeat("  ", min(s.Depth, indentMax))+s.Name, bar(offset, lasted, whole), command.OrDash(why))
	}
}

// bar is where a span lies in the time of the trace. It has a mark for the shortest span, too.
func bar(offset, lasted, whole time.Duration) string {
	if whole <= 0 {
		return "█" + strings.Repeat("·", barWidth-1)
	}
	at := func(d time.Duration) int { return int(float64(d) / float64(whole) * barWidth) }
	first := min(at(offset), barWidth-1)
	last := min(max(at(offset+lasted), first+1), barWidth)
	return strings.Repeat("·", first) + strings.Repeat("█", last-first) + strings.Repeat("·", barWidth-last)
}

// short is a duration with four digits at most.
func short(d time.Duration) string {
	for unit := time.Microsecond; unit < time.Hour; unit *= 10 {
		if d < 10_000*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Minute).String()
}
