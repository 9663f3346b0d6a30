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

// traced tells whether spans are made of what happens to e now.
func (o *Owner) traced(e *entry) bool {
	return !o.replaying && o.Tracing.On() && telemetry.Sampled(e.Trace)
}

// traceApply shows the way of a submit from the log into memory.
func (o *Owner) traceApply(e *entry, stored time.Time) {
	if o.traced(e) {
		o.Tracing.Span(e.Trace, "apply", trace.SpanKindConsumer, stored, time.Now(), o.attributes(e)...)
	}
}

// sentTrigger is a trigger that leaves with this turn's hints.
type sentTrigger struct {
	parent []byte
	at     time.Time
	about  []attribute.KeyValue
}

// traceTrigger notes a trigger, to be shown once it is sent.
func (o *Owner) traceTrigger(e *entry) {
	if o.traced(e) {
		o.outbox.traced = append(o.outbox.traced, sentTrigger{e.Trace, time.Now(), o.attributes(e)})
	}
}

// traceTriggers shows the triggers that were sent.
func (o *Owner) traceTriggers() {
	for _, t := range o.outbox.traced {
		o.Tracing.Span(t.parent, "trigger", trace.SpanKindProducer, t.at, time.Now(), t.about...)
	}
	o.outbox.traced = nil
}

// traceWait shows how long a task was ready until it was granted.
func (o *Owner) traceWait(e *entry) {
	if o.traced(e) {
		o.Tracing.Span(e.Trace, "wait", trace.SpanKindInternal, time.UnixMilli(e.ReadyAt), time.UnixMilli(e.Attempt.StartedAt), o.attributes(e)...)
	}
}
