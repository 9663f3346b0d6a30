package yard_test

import (
	"context"
	"crypto/rand"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
)

// recorder is a tracer provider that keeps the spans that have ended, in their order.
type recorder struct {
	embedded.TracerProvider
	mu    sync.Mutex
	ended []*span
}

// Tracer implements trace.TracerProvider.
func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer { return &tracer{recorder: r} }

// spans are those of a name that have ended.
func (r *recorder) spans(name string) (all []*span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.ended {
		if s.name == name {
			all = append(all, s)
		}
	}
	return all
}

type tracer struct {
	embedded.Tracer
	recorder *recorder
}

// Start implements trace.Tracer.
func (t *tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	cfg, parent := trace.NewSpanStartConfig(opts...), trace.SpanContextFromContext(ctx)
	own := trace.SpanContextConfig{TraceID: parent.TraceID(), TraceFlags: trace.FlagsSampled}
	_, _ = rand.Read(own.SpanID[:]) // never fails
	if !parent.IsValid() {
		_, _ = rand.Read(own.TraceID[:])
	}
	s := &span{recorder: t.recorder, name: name, kind: cfg.SpanKind(), parent: parent, own: trace.NewSpanContext(own), attributes: cfg.Attributes()}
	return trace.ContextWithSpan(ctx, s), s
}

// span is one that a recorder keeps. It is used by one goroutine until it has ended.
type span struct {
	noop.Span
	recorder    *recorder
	name        string
	kind        trace.SpanKind
	parent, own trace.SpanContext
	attributes  []attribute.KeyValue
	code        codes.Code
	description string
}

// SpanContext implements trace.Span.
func (s *span) SpanContext() trace.SpanContext { return s.own }

// IsRecording implements trace.Span.
func (s *span) IsRecording() bool { return true }

// SetAttributes implements trace.Span.
func (s *span) SetAttributes(all ...attribute.KeyValue) { s.attributes = append(s.attributes, all...) }

// SetStatus implements trace.Span.
func (s *span) SetStatus(code codes.Code, description string) {
	s.code, s.description = code, description
}

// End implements trace.Span.
func (s *span) End(...trace.SpanEndOption) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	s.recorder.ended = append(s.recorder.ended, s)
}
