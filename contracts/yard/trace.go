package yard

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
)

// headerTraceparent is lower case on purpose: Go's nats.Header and clients in other languages are case-sensitive.
const headerTraceparent = "traceparent"

// tracerName is the instrumentation scope of the SDK's spans.
const tracerName = "github.com/yardmaster-io/yardmaster/contracts/yard"

// traceOf is the context's span as it travels, empty if there is none. Tracestate and baggage are not carried.
func traceOf(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[headerTraceparent]
}

// startRun continues the task's trace with a span `run`. Without a provider the
// span records nothing, but tasks that the handler submits still join the trace.
func (s *session) startRun(ctx context.Context, parent string, a *Attempt) (context.Context, trace.Span) {
	if parent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{headerTraceparent: parent})
	}
	ctx, span := s.tracer.Start(ctx, signals.SpanRun, s.spanOptions...)
	if span.IsRecording() {
		about := signals.Task{Domain: a.Domain, Tasklist: a.Tasklist, Type: a.Type, ID: a.TaskID}
		if id, err := ids.ParseTaskID(a.TaskID); err == nil {
			about.Partition = id.Partition()
		}
		span.SetAttributes(about.Attributes(signals.SpanRun, signals.Attribute(signals.Attempt, a.Number))...)
	}
	return ctx, span
}

// endRun ends the span of an attempt; err is what the handler returned. With a codec its text, which may quote the input, is no part of the span.
func endRun(span trace.Span, err error, content coded.Codec) {
	var put snoozed
	if err != nil && span.IsRecording() && !errors.As(err, &put) {
		if content != nil {
			err = errors.New(ErrorType(err))
		}
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// TraceSubmits records a span `submit` around each submit, which the spans of its tasks continue. A nil provider is OpenTelemetry's global one. The
// other side needs no middleware: a worker records a span `run` per attempt, see WithTracerProvider.
func TraceSubmits(p trace.TracerProvider) SubmitMiddleware {
	if p == nil {
		p = otel.GetTracerProvider()
	}
	tracer := p.Tracer(tracerName)
	return func(next SubmitFunc) SubmitFunc {
		return func(ctx context.Context, tasks []Task) ([]string, error) {
			ctx, span := tracer.Start(ctx, signals.SpanSubmit, trace.WithSpanKind(trace.SpanKindProducer))
			if span.IsRecording() {
				span.SetAttributes(submitAttributes(tasks)...)
			}
			ids, err := next(ctx, tasks)
			if len(ids) == 1 {
				span.SetAttributes(attribute.String(signals.MessagingMessageID, ids[0]))
			}
			endRun(span, err, nil)
			return ids, err
		}
	}
}

func submitAttributes(tasks []Task) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String(signals.MessagingSystem, signals.System),
		attribute.String(signals.MessagingKind, signals.KindSend),
		attribute.String(signals.MessagingOperation, signals.SpanSubmit),
	}
	if len(tasks) != 1 {
		return append(all, attribute.Int(signals.MessagingBatchCount, len(tasks)))
	}
	return append(all, attribute.String(signals.MessagingDestination, tasks[0].Tasklist), signals.Attribute(signals.Type, tasks[0].Type))
}
