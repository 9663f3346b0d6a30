// Package spans makes spans of what the turns of a partition do to traced tasks.
//
// Owns: which spans there are, and when each begins and ends. Never does: decide which tasks are traced; their submits do.
// On failure: nothing can fail; a span that is lost is missing in the trace.
package spans

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Maker makes the spans of one partition. Clock tells the time of the log.
type Maker struct {
	Partition int
	Tracing   *telemetry.Tracing
	Clock     *clock.Clock
}

// Show makes spans of what a turn has done to traced tasks.
func (m *Maker) Show(fx *replica.Effects) {
	if !m.Tracing.On() {
		return
	}
	for _, t := range fx.TracedTriggers {
		if now := m.Clock.Now(); telemetry.Sampled([]byte(t.Trace)) {
			m.show(t, signals.SpanTrigger, now, now)
		}
	}
	for i := range fx.Traced {
		x := &fx.Traced[i]
		if !telemetry.Sampled([]byte(x.Task.Trace)) {
			continue
		}
		since, now := at(x.Since), m.Clock.Now()
		switch x.What {
		case replica.TraceApplied:
			m.show(x.Task, signals.SpanApply, since, now)
		case replica.TraceGranted:
			m.showWait(x.Task, x.Waited)
			if turn := x.Since; turn > x.Task.ReadyAt {
				m.show(x.Task, signals.SpanOrder, at(x.Task.ReadyAt), at(turn), signals.Attribute(signals.Reason, "earlier tasks of the order key"))
			}
			m.show(x.Task, signals.SpanWait, since, at(x.Task.Attempt.StartedAt))
		case replica.TraceExpired:
			m.Tracing.Failed([]byte(x.Task.Trace), signals.SpanExpired, signals.SpanKind(signals.SpanExpired), since, now,
				"its worker did not say how the attempt ended, in its time", m.attributes(x.Task, signals.SpanExpired)...)
		}
	}
}

// showWait shows why a task was not to run before it was ready, and how long.
func (m *Maker) showWait(t *taskstate.Task, w taskstate.Wait) {
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
	m.show(t, name, at(w.Since), at(w.Until), signals.Attribute(signals.Reason, reason))
}

// at is the end of a millisecond of the log: what a task was submitted for never begins before its submit, which has a finer clock.
func at(ms int64) time.Time { return time.UnixMilli(ms).Add(time.Millisecond - 1) }

func (m *Maker) show(t *taskstate.Task, name string, since, until time.Time, more ...attribute.KeyValue) {
	if until.Before(since) {
		until = since
	}
	m.Tracing.Span([]byte(t.Trace), name, signals.SpanKind(name), since, until, m.attributes(t, name, more...)...)
}

func (m *Maker) attributes(t *taskstate.Task, span string, more ...attribute.KeyValue) []attribute.KeyValue {
	return signals.Task{
		Domain: t.Domain, Tasklist: t.Tasklist, Type: t.Type, ID: t.ID.String(), Partition: m.Partition,
	}.Attributes(span, more...)
}
