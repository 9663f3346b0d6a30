package telemetry_test

import (
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// TestLostSpansAreCounted: those that the queue has no room for, and those that the collector does not take. What
// is counted and what arrives is all there was.
func TestLostSpansAreCounted(t *testing.T) {
	const spans = 2000
	for _, c := range []struct {
		name string
		env  []string
		away bool
	}{
		{"enough room", nil, false},
		{"a full queue", []string{"OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=10"}, false},
		{"no one collects", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := signalkit.RunTraceSink(t)
			env := append(sink.Env(), c.env...)
			if c.away {
				env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT=100"}
			}
			setEnv(t, env...)
			m := newMetrics(t)
			tracing, err := telemetry.NewTracing(t.Context(), "s", "i", m)
			testkit.NoError(t, err)
			parent := telemetry.ParseTraceparent(sampledParent)
			for range spans {
				tracing.Span(parent, "x", trace.SpanKindInternal, time.Now(), time.Now())
			}
			if err := tracing.Shutdown(t.Context()); err != nil && !c.away {
				t.Fatal(err)
			}
			dropped, arrived := m.Counter(signals.SpansDropped, "s").Value(), int64(len(sink.Spans()))
			if dropped+arrived != spans {
				t.Errorf("%d were counted as lost and %d arrived, of %d", dropped, arrived, spans)
			}
			if lossy := c.away || c.env != nil; (dropped > 0) != lossy {
				t.Errorf("%d were lost", dropped)
			}
		})
	}
}

// TestTheQueueEmpties: what has left makes room, so that a process that sends little loses nothing in the long run.
func TestTheQueueEmpties(t *testing.T) {
	sink := signalkit.RunTraceSink(t)
	setEnv(t, append(sink.Env(), "OTEL_BSP_MAX_QUEUE_SIZE=100", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=10", "OTEL_BSP_SCHEDULE_DELAY=1")...)
	m := newMetrics(t)
	tracing, err := telemetry.NewTracing(t.Context(), "s", "i", m)
	testkit.NoError(t, err)
	parent := telemetry.ParseTraceparent(sampledParent)
	const rounds, spans = 30, 10
	for round := range rounds {
		for range spans {
			tracing.Span(parent, "x", trace.SpanKindInternal, time.Now(), time.Now())
		}
		testkit.Eventually(t, time.Minute, func() error {
			if n := len(sink.Spans()); n < (round+1)*spans {
				return fmt.Errorf("%d spans after %d rounds, %d were lost", n, round+1, m.Counter(signals.SpansDropped, "s").Value())
			}
			return nil
		})
	}
	testkit.NoError(t, tracing.Shutdown(t.Context()))
}
