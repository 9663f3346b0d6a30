package partition

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// showTraces makes spans of what a turn has done to traced tasks.
func showTraces(d *Deps, fx *replica.Effects) {
	if !d.Tracing.On() {
		return
	}
	for _, t := range fx.TracedTriggers {
		if now := d.Clock.Now(); telemetry.Sampled([]byte(t.Trace)) {
			show(d, t, signals.SpanTrigger, now, now)
		}
	}
	for i := range fx.Traced {
		x := &fx.Traced[i]
		if !telemetry.Sampled([]byte(x.Task.Trace)) {
			continue
		}
		since, now := time.UnixMilli(x.Since), d.Clock.Now()
		switch x.What {
		case replica.TraceApplied:
			show(d, x.Task, signals.SpanApply, since, now)
		case replica.TraceGranted:
			showWait(d, x.Task, x.Waited)
			show(d, x.Task, signals.SpanWait, since, time.UnixMilli(x.Task.Attempt.StartedAt))
		case replica.TraceExpired:
			d.Tracing.Failed([]byte(x.Task.Trace), signals.SpanExpired, signals.SpanKind(signals.SpanExpired), since, now,
				"its worker did not say how the attempt ended, in its time", attributes(d, x.Task, signals.SpanExpired)...)
		}
	}
}

// showWait shows why a task was not to run before it was ready, and how long.
func showWait(d *Deps, t *taskstate.Task, w taskstate.Wait) {
	name, reason := signals.SpanBackoff, "failed: "+w.Message
	switch w.After {
	case 0:
		return
	case taskstate.StepParked:
		name, reason = signals.SpanDelay, "scheduled"
	case taskstate.StepTimedOut:
		reason = "timed out: " + w.Message
	case taskstate.StepLost:
		reason = "lost: " + w.Message
	}
	show(d, t, name, time.UnixMilli(w.Since), time.UnixMilli(w.Until), signals.Attribute(signals.Reason, reason))
}

func show(d *Deps, t *taskstate.Task, name string, since, until time.Time, more ...attribute.KeyValue) {
	d.Tracing.Span([]byte(t.Trace), name, signals.SpanKind(name), since, until, attributes(d, t, name, more...)...)
}

func attributes(d *Deps, t *taskstate.Task, span string, more ...attribute.KeyValue) []attribute.KeyValue {
	return signals.Task{
		Domain: t.Domain, Tasklist: t.Tasklist, Type: t.Type, ID: t.ID.String(), Partition: d.Partition,
	}.Attributes(span, more...)
}
