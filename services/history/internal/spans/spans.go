// Package spans makes spans of what the turns of a partition do to traced tasks, and of attempts that fail, of every task.
//
// Owns: which spans there are, and when each begins and ends. Never does: decide which tasks are traced; their submits do.
// On failure: nothing can fail; a span that is lost is missing in the trace.
package spans

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// unsampledMax is how many failed attempts of a domain a partition shows in a second if their tasks are not sampled.
const unsampledMax = 20

// Maker makes the spans of one partition. Clock tells the time of the log. It is not safe for concurrent use.
type Maker struct {
	Partition int
	Tracing   *telemetry.Tracing
	Clock     *clock.Clock

	// shown is how many unsampled failures of each domain were seen in a second, Unix time.
	second int64
	shown  map[string]int
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
		since, now := at(x.Since), m.Clock.Now()
		if !telemetry.Sampled([]byte(x.Task.Trace)) {
			m.showUnsampled(x, since, now)
			continue
		}
		switch x.What { // a failed attempt has the spans of its worker and of the frontend
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
				whyExpired, m.attributes(x.Task, signals.SpanExpired)...)
		}
	}
}

// whyExpired is the error of an expired attempt.
const whyExpired = "its worker did not say how the attempt ended, in its time"

// showUnsampled shows an attempt that has failed, though its task is not traced. The trace has the id of the task if the
// submit had no trace context.
func (m *Maker) showUnsampled(x *replica.Traced, since, now time.Time) {
	t, name, why := x.Task, signals.SpanFailed, ""
	switch x.What {
	case replica.TraceExpired:
		if name, why = signals.SpanExpired, whyExpired; t.HowExpired() == taskstate.StepHandedBack {
			return // its worker may not have received it, so it is no failure
		}
	case replica.TraceFailed:
		why = "the attempt failed: " + t.ErrMessage
	default:
		return
	}
	if !m.mayShow(t.Domain, now) {
		return
	}
	m.Tracing.FailedUnsampled([]byte(t.Trace), trace.TraceID(t.ID), name, signals.SpanKind(name), since, now, why,
		m.attributes(t, name, signals.Attribute(signals.Attempt, int(t.Grants())), signals.Attribute(signals.State, t.State.String()))...)
}

// mayShow counts the failures of a domain in a second, so that a domain whose tasks all fail leaves the queue of spans to others.
func (m *Maker) mayShow(domain string, now time.Time) bool {
	if second := now.Unix(); second != m.second {
		m.second = second
		clear(m.shown)
	}
	if m.shown == nil {
		m.shown = map[string]int{}
	}
	m.shown[domain]++
	return m.shown[domain] <= unsampledMax
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
