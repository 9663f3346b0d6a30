package partition

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

func attributes(d *Deps, t *taskstate.Task) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("yard.domain", t.Domain), attribute.String("yard.tasklist", t.Tasklist),
		attribute.String("yard.type", t.Type), attribute.String("yard.task_id", t.ID.String()),
		attribute.Int("yard.partition", d.Partition),
	}
}

// showTraces makes spans of what a turn has done to traced tasks.
func showTraces(d *Deps, all []replica.Traced) {
	if !d.Tracing.On() {
		return
	}
	for _, x := range all {
		if !telemetry.Sampled(x.Task.Trace) {
			continue
		}
		name, kind, end := "apply", trace.SpanKindConsumer, d.Clock.Now()
		switch x.What {
		case replica.TraceTriggered:
			name, kind = "trigger", trace.SpanKindProducer
		case replica.TraceGranted:
			name, kind, end = "wait", trace.SpanKindInternal, time.UnixMilli(x.Task.Attempt.StartedAt)
		}
		d.Tracing.Span(x.Task.Trace, name, kind, time.UnixMilli(x.Since), end, attributes(d, x.Task)...)
	}
}
