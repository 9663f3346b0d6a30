package yard

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
)

// TraceSubmits records a span `submit` around each submit, which the spans of its tasks continue. A nil provider is
// OpenTelemetry's global one. The other side needs no middleware: a worker records a span `run` per attempt, see
// WithTracerProvider.
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
			endRun(span, err)
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
