package telemetry_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// setEnv gives the test exactly these OTEL_* variables.
func setEnv(t *testing.T, vars ...string) {
	t.Helper()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "") // empty counts as unset
		}
	}
	for _, kv := range vars {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
}

func TestSpansReachTheCollector(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			sink := signalkit.RunTraceSink(t)
			setEnv(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.Endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol)
			tracing, err := telemetry.NewTracing(t.Context(), "yard-history", "history-1", nil)
			testkit.NoError(t, err)
			if !tracing.On() {
				t.Fatal("off")
			}
			parent := telemetry.ParseTraceparent(sampledParent)
			start := time.Unix(100, 5).UTC()
			span, inner := tracing.Start(parent, "commit", trace.SpanKindProducer, start)
			tracing.Span(inner, "append", trace.SpanKindClient, start.Add(time.Second), start.Add(3*time.Second),
				attribute.Int("yard.batch", 3))
			span.End(trace.WithTimestamp(start.Add(4 * time.Second)))
			testkit.NoError(t, tracing.Shutdown(t.Context()))

			spans := sink.Spans()
			testkit.MustEqual(t, "spans", len(spans), 2)
			child, outer := spans[0], spans[1]
			if outer.Service != "yard-history" || outer.Instance != "history-1" {
				t.Errorf("from %q, %q", outer.Service, outer.Instance)
			}
			got := fmt.Sprintln(outer.Name, outer.Kind, outer.TraceID, outer.ParentID, outer.Start.UTC(), outer.End.Sub(outer.Start))
			want := fmt.Sprintln("commit", tracepb.Span_SPAN_KIND_PRODUCER, sampledParent[3:35], sampledParent[36:52], start, 4*time.Second)
			if got != want {
				t.Errorf("got  %swant %s", got, want)
			}
			got = fmt.Sprintln(child.Name, child.Kind, child.TraceID, child.ParentID, child.End.Sub(child.Start), child.Attrs["yard.batch"])
			want = fmt.Sprintln("append", tracepb.Span_SPAN_KIND_CLIENT, outer.TraceID, outer.SpanID, 2*time.Second, "3")
			if got != want {
				t.Errorf("got  %swant %s", got, want)
			}
		})
	}
}

func TestSampling(t *testing.T) {
	sink := signalkit.RunTraceSink(t)
	ratio := func(r float64) *float64 { return &r }
	for _, c := range []struct {
		name    string
		sampler string
		parent  string
		ratio   *float64
		spans   int
	}{
		{"a new trace", "", "", nil, 2},
		{"a new trace that the sampler refuses", "parentbased_always_off", "", nil, 0},
		{"a new trace that its ratio wants", "parentbased_always_off", "", ratio(1), 2},
		{"a new trace that its ratio refuses", "", "", ratio(0), 0},
		{"a sampled parent", "parentbased_always_off", sampledParent, nil, 2},
		{"a parent that is not sampled", "", unsampledParent, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink.Reset()
			setEnv(t, append(sink.Env(), "OTEL_TRACES_SAMPLER="+c.sampler)...)
			tracing, err := telemetry.NewTracing(t.Context(), "s", "i", nil)
			testkit.NoError(t, err)
			parent := telemetry.ParseTraceparent(c.parent)
			begin := func() (trace.Span, []byte) {
				if parent == nil {
					return tracing.Begin(c.ratio, "outer", trace.SpanKindServer, time.Now())
				}
				return tracing.Start(parent, "outer", trace.SpanKindServer, time.Now())
			}
			span, inner := begin()
			if parent != nil && inner == nil {
				t.Error("the decision not to sample is lost: no context to pass on")
			}
			testkit.Equal(t, "sampled", telemetry.Sampled(inner), c.spans > 0)
			tracing.Span(inner, "inner", trace.SpanKindInternal, time.Now(), time.Now())
			span.End()
			testkit.NoError(t, tracing.Shutdown(t.Context()))
			testkit.Equal(t, "spans", len(sink.Spans()), c.spans)
		})
	}
}

// A failure is recorded whatever the sampler says: in the trace of its parent, or in the trace that it names.
func TestAFailureIsRecordedUnsampled(t *testing.T) {
	sink := signalkit.RunTraceSink(t)
	setEnv(t, append(sink.Env(), "OTEL_TRACES_SAMPLER=parentbased_always_off")...)
	tracing, err := telemetry.NewTracing(t.Context(), "s", "i", nil)
	testkit.NoError(t, err)
	id, now := trace.TraceID{1, 2}, time.Unix(100, 0)
	for _, parent := range []string{"", unsampledParent} {
		tracing.FailedUnsampled(telemetry.ParseTraceparent(parent), id, "broke", trace.SpanKindInternal, now, now.Add(time.Second), "no disk")
	}
	testkit.NoError(t, tracing.Shutdown(t.Context()))
	spans := sink.Spans()
	testkit.MustEqual(t, "spans", len(spans), 2)
	testkit.Equal(t, "without a parent", []string{spans[0].TraceID, spans[0].ParentID, spans[0].Raw.GetStatus().GetMessage()}, []string{id.String(), "", "no disk"})
	testkit.Equal(t, "under a parent", []string{spans[1].TraceID, spans[1].ParentID}, []string{unsampledParent[3:35], unsampledParent[36:52]})
}

func TestSpanWithoutParentIsNone(t *testing.T) {
	sink := signalkit.RunTraceSink(t)
	setEnv(t, sink.Env()...)
	tracing, err := telemetry.NewTracing(t.Context(), "s", "i", nil)
	testkit.NoError(t, err)
	tracing.Span(nil, "orphan", trace.SpanKindInternal, time.Now(), time.Now())
	testkit.NoError(t, tracing.Shutdown(t.Context()))
	testkit.MustEqual(t, "spans", len(sink.Spans()), 0)
}

func TestTracingEnvironment(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317"
	for _, c := range []struct {
		env  []string
		on   bool
		fail string
	}{
		{nil, false, ""},
		{[]string{endpoint}, true, ""},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318/v1/traces"}, true, ""},
		{[]string{endpoint, "OTEL_SDK_DISABLED=true"}, false, ""},
		{[]string{endpoint, "OTEL_TRACES_EXPORTER=none"}, false, ""},
		{[]string{endpoint, "OTEL_TRACES_EXPORTER=zipkin"}, false, "OTEL_TRACES_EXPORTER"},
		{[]string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=http/json"}, false, "http/json"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=nowhere"}, false, "nowhere"},
	} {
		t.Run(strings.Join(c.env, " "), func(t *testing.T) {
			setEnv(t, c.env...)
			tracing, err := telemetry.NewTracing(t.Context(), "s", "i", nil)
			if c.fail != "" {
				if err == nil || !strings.Contains(err.Error(), c.fail) {
					t.Fatalf("got %v, want an error that names %s", err, c.fail)
				}
				return
			}
			testkit.NoError(t, err)
			testkit.Equal(t, "on", tracing.On(), c.on)
			testkit.Check(t, tracing.Shutdown(t.Context()))
		})
	}
}

func TestTracingOffCostsNothing(t *testing.T) {
	parent := telemetry.ParseTraceparent(sampledParent)
	now := time.Now()
	domain := strings.Repeat("d", 3)
	for name, tracing := range map[string]*telemetry.Tracing{"nil": nil, "zero": {}} {
		if tracing.On() {
			t.Errorf("%s: on", name)
		}
		allocs := testing.AllocsPerRun(100, func() {
			span, inner := tracing.Start(parent, "outer", trace.SpanKindServer, now, attribute.String("domain", domain))
			tracing.Span(inner, "inner", trace.SpanKindInternal, now, now, attribute.Int("n", len(domain)))
			tracing.Tracer()
			span.End()
			span, _ = tracing.Begin(nil, "outer", trace.SpanKindServer, now, attribute.String("domain", domain))
			span.End()
			tracing.FailedUnsampled(parent, trace.TraceID{1}, "broke", trace.SpanKindInternal, now, now, domain, attribute.Int("n", len(domain)))
		})
		testkit.Equal(t, name, allocs, 0)
		if _, inner := tracing.Start(parent, "", trace.SpanKindServer, now); !bytes.Equal(inner, parent) {
			t.Errorf("%s: the caller's context does not pass through", name)
		}
		if err := tracing.Shutdown(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
