package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// TestAProgramIsPartOfTheTrace: it gets the context of its span, which hangs under the submit of its task, and the log names both.
func TestAProgramIsPartOfTheTrace(t *testing.T) {
	sink := signalkit.RunTraceSink(t)
	for _, setting := range append(sink.Env(), "OTEL_BSP_SCHEDULE_DELAY=50", "TRACEPARENT=of-the-worker") {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	s := newShell(t)
	stop := s.work("--exec", `echo "$TRACEPARENT"`)
	id := s.yard("task", "submit", "-t", "mail", "greet")
	traceparent := strings.Split(strings.Trim(string(s.await(id, inState("completed")).Result), `"`), "-")
	if len(traceparent) != 4 {
		t.Fatalf("the program had TRACEPARENT=%v", traceparent)
	}
	var run, submit signalkit.Span
	testkit.Eventually(t, within, func() error {
		for _, span := range sink.Spans() {
			switch {
			case span.TraceID != traceparent[1]:
			case span.Name == "run":
				run = span
			case span.Name == "submit":
				submit = span
			}
		}
		if run.SpanID == "" || submit.SpanID == "" {
			return fmt.Errorf("the trace has no run or no submit: %q, %q", run.SpanID, submit.SpanID)
		}
		return nil
	})
	testkit.Equal(t, "the span of the program", run.SpanID, traceparent[2])
	testkit.Equal(t, "its parent", run.ParentID, submit.SpanID)
	testkit.Equal(t, "its service", run.Service, "yard-worker")
	testkit.Equal(t, "its task", run.Attrs["yardmaster.task_id"], id)
	if _, log := stop(); !strings.Contains(log, "task_id="+id) || !strings.Contains(log, "trace_id="+run.TraceID) {
		t.Errorf("the log does not name the task and its trace:\n%s", log)
	}
}
