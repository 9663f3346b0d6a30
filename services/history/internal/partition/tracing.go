package partition

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

func (o *Owner) attributes(e *entry) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("yard.domain", e.Domain), attribute.String("yard.tasklist", e.Tasklist),
		attribute.String("yard.type", e.Type), attribute.String("yard.task_id", e.ID.String()),
		attribute.Int("yard.partition", o.Partition),
	}
}

// traceApply shows the way of a submit from the log into memory.
func (o *Owner) traceApply(e *entry, stored time.Time) {
	if o.replaying || !o.Tracing.On() || !telemetry.Sampled(e.Trace) {
		return
	}
	o.Tracing.Span(e.Trace, "apply", trace.SpanKindConsumer, stored, time.Now(), o.attributes(e)...)
}
