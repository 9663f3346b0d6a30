package telemetry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
)

// scope names the instrumentation in every span.
const scope = "github.com/yardmaster-io/yardmaster"

// grpcPort is the well-known port of OTLP over gRPC.
const grpcPort = "4317"

// Tracing makes and exports spans. Nil and the zero value are off: then every
// method returns at once and allocates nothing, so callers need not ask first.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	// always is a tracer for spans that are recorded whatever the sampler of the process says. It has the queue of the other one.
	always trace.Tracer
}

// NewTracing reads the standard OTEL_* variables. Tracing is on when an endpoint
// is set (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT),
// unless OTEL_SDK_DISABLED is true or OTEL_TRACES_EXPORTER is none. The protocol
// (OTEL_EXPORTER_OTLP_PROTOCOL) is grpc or http/protobuf; without one, port 4317
// means grpc and everything else http/protobuf. Headers, TLS, time-outs, batching
// and the sampler have their standard variables too; the default sampler records
// every trace that starts here and follows the caller's choice otherwise.
//
// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over service and instance.
// The collector is not contacted here. The caller calls Shutdown.
// Spans that are lost are counted in metrics, which may be nil.
func NewTracing(ctx context.Context, service, instance string, metrics *Metrics) (*Tracing, error) {
	exporter, err := newExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	if exporter == nil {
		return &Tracing{}, nil
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", service),
			attribute.String("service.instance.id", instance),
		),
		resource.WithFromEnv(),
	)
	if err != nil {
		// Nothing has been exported yet, so there is nothing to lose by closing.
		return nil, fmt.Errorf("tracing: %w", errors.Join(err, exporter.Shutdown(ctx)))
	}
	queue := newQueue(exporter, queueSize(), metrics.Counter(signals.SpansDropped, strings.TrimPrefix(service, "yard-")))
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(queue), sdktrace.WithResource(about))
	always := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(queue), sdktrace.WithResource(about),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithIDGenerator(spanIDs{}),
	)
	return &Tracing{provider: provider, tracer: provider.Tracer(scope), always: always.Tracer(scope)}, nil
}

// newExporter returns nil when the environment asks for no tracing.
func newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	endpoint := firstEnv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" || strings.EqualFold(firstEnv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	switch kind := firstEnv("OTEL_TRACES_EXPORTER"); kind {
	case "none":
		return nil, nil
	case "", "otlp":
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER %q: want otlp or none", kind)
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("OTLP endpoint %q: want a URL like http://localhost:4317", endpoint)
	}
	protocol := firstEnv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	if protocol == "" && u.Port() == grpcPort {
		protocol = "grpc"
	}
	switch protocol {
	case "grpc":
		return otlptracegrpc.New(ctx)
	case "", "http/protobuf":
		return otlptracehttp.New(ctx)
	default:
		return nil, fmt.Errorf("OTLP protocol %q: want grpc or http/protobuf", protocol)
	}
}

func firstEnv(names ...string) string {
	for _, name := range names {
		if v := strings.TrimSpace(os.Getenv(name)); v != "" {
			return v
		}
	}
	return ""
}

// On tells whether spans are made. Ask it only where preparing a span costs
// something by itself.
func (t *Tracing) On() bool {
	return t != nil && t.tracer != nil
}

// Provider returns the provider of that tracer for libraries that want one; one that does nothing when tracing is off.
func (t *Tracing) Provider() trace.TracerProvider {
	if !t.On() {
		return noop.NewTracerProvider()
	}
	return t.provider
}

// Tracer returns the tracer for libraries that want one; one that does nothing
// when tracing is off.
func (t *Tracing) Tracer() trace.Tracer {
	if !t.On() {
		return noop.Tracer{}
	}
	return t.tracer
}

// shutdownWithin bounds the export of the last spans, which must not hold up a stop.
const shutdownWithin = 3 * time.Second

// Shutdown exports what is still held, also if ctx has ended, and ends the exporter.
func (t *Tracing) Shutdown(ctx context.Context) error {
	if !t.On() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("the last spans were lost: %w", err)
	}
	return nil
}

// Span records one finished span under parent. It does nothing if tracing is off
// or parent is not sampled, so it may be called for every record of a batch.
func (t *Tracing) Span(parent []byte, name string, kind trace.SpanKind, start, end time.Time, attrs ...attribute.KeyValue) {
	if !t.On() || !Sampled(parent) {
		return
	}
	span := t.begin(parent, name, kind, start, attrs)
	span.End(trace.WithTimestamp(end))
}

// Failed records one finished span under parent, as Span does, of what failed and why.
func (t *Tracing) Failed(parent []byte, name string, kind trace.SpanKind, start, end time.Time, why string, attrs ...attribute.KeyValue) {
	if !t.On() || !Sampled(parent) {
		return
	}
	span := t.begin(parent, name, kind, start, attrs)
	span.SetStatus(codes.Error, why)
	span.End(trace.WithTimestamp(end))
}

// FailedUnsampled records one finished span of what failed, and why, in a trace that is not sampled: that of parent, or
// the trace of that id if there is no parent.
func (t *Tracing) FailedUnsampled(parent []byte, id trace.TraceID, name string, kind trace.SpanKind, start, end time.Time, why string, attrs ...attribute.KeyValue) {
	if !t.On() {
		return
	}
	ctx := context.WithValue(context.Background(), traceIDKey{}, id)
	if sc := ToSpanContext(parent); sc.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	span := begin(ctx, t.always, name, kind, start, attrs)
	span.SetStatus(codes.Error, why)
	span.End(trace.WithTimestamp(end))
}

// Start begins a span under parent and returns it with its own compact context, to be the parent of what follows. The
// caller ends it. If tracing is off or parent is not sampled, the span does nothing and the context is parent itself,
// so the caller's trace passes through.
func (t *Tracing) Start(parent []byte, name string, kind trace.SpanKind, start time.Time, attrs ...attribute.KeyValue) (trace.Span, []byte) {
	if !t.On() || !Sampled(parent) {
		return noop.Span{}, parent
	}
	span := t.begin(parent, name, kind, start, attrs)
	return span, FromSpan(span.SpanContext())
}

// Begin begins a trace with a span, as Start does. The ratio is the share of traces that are recorded, 0 to 1; without
// one the sampler of the process decides. The context is nil if the trace is not recorded.
func (t *Tracing) Begin(ratio *float64, name string, kind trace.SpanKind, start time.Time, attrs ...attribute.KeyValue) (trace.Span, []byte) {
	if !t.On() || ratio != nil && rand.Float64() >= *ratio {
		return noop.Span{}, nil
	}
	tracer := t.tracer
	if ratio != nil {
		tracer = t.always
	}
	span := begin(context.Background(), tracer, name, kind, start, attrs)
	if !span.SpanContext().IsSampled() {
		return noop.Span{}, nil
	}
	return span, FromSpan(span.SpanContext())
}

func (t *Tracing) begin(parent []byte, name string, kind trace.SpanKind, start time.Time, attrs []attribute.KeyValue) trace.Span {
	return begin(trace.ContextWithRemoteSpanContext(context.Background(), ToSpanContext(parent)), t.tracer, name, kind, start, attrs)
}

func begin(ctx context.Context, tracer trace.Tracer, name string, kind trace.SpanKind, start time.Time, attrs []attribute.KeyValue) trace.Span {
	// The copy keeps the caller's slice on its stack, so that a call costs no
	// allocation when tracing is off.
	kept := append(make([]attribute.KeyValue, 0, len(attrs)), attrs...)
	_, span := tracer.Start(ctx, name,
		trace.WithTimestamp(start),
		trace.WithSpanKind(kind),
		trace.WithAttributes(kept...),
	)
	return span
}

// traceIDKey is the key of a context's value that is the id of the trace to begin.
type traceIDKey struct{}

// spanIDs makes the ids of spans, and those of traces unless the context has one.
type spanIDs struct{}

// NewIDs implements sdktrace.IDGenerator.
func (g spanIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(traceIDKey{}).(trace.TraceID)
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (spanIDs) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
