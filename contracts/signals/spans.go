package signals

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Keys of OpenTelemetry's conventions for messaging, which trace viewers know.
const (
	MessagingSystem      = "messaging.system"
	MessagingDestination = "messaging.destination.name"
	MessagingMessageID   = "messaging.message.id"
	MessagingBatchCount  = "messaging.batch.message_count"
	MessagingOperation   = "messaging.operation.name"
	MessagingKind        = "messaging.operation.type"
)

// The values of MessagingSystem and MessagingKind.
const (
	System = "yardmaster"

	// KindSend is for spans that bring a task to its tasklist.
	KindSend = "send"
	// KindReceive is for spans that bring it to a worker.
	KindReceive = "receive"
	// KindProcess is for its run.
	KindProcess = "process"
	// KindSettle is for the outcome that its worker reports.
	KindSettle = "settle"
)

// kinds are the span names that are operations of messaging.
var kinds = map[string]string{
	SpanSchedule: KindSend, SpanSubmit: KindSend, SpanAppend: KindSend, SpanTrigger: KindSend, SpanMatch: KindReceive, SpanGrab: KindReceive, SpanStart: KindReceive,
	SpanRun: KindProcess, SpanComplete: KindSettle, SpanFail: KindSettle, SpanHandBack: KindSettle,
}

// The names of spans, in the order of a task's life.
const (
	// SpanSchedule is the start of a run of a schedule, in place of submit and append.
	SpanSchedule = "schedule"
	SpanSubmit   = "submit"
	SpanAppend   = "append"
	SpanApply    = "apply"
	// SpanDelay is the wait for the time at which a task is to run.
	SpanDelay = "delay"
	// SpanBackoff is the wait after an attempt that failed.
	SpanBackoff = "backoff"
	// SpanOrder is the wait for the earlier tasks of the same order key.
	SpanOrder   = "order key"
	SpanTrigger = "trigger"
	// SpanWait is the wait for a worker and for limits.
	SpanWait  = "wait"
	SpanMatch = "match"
	SpanGrab  = "grab"
	// SpanStart is the way to a worker whose poll waited when the task was submitted, in place of trigger, wait, match and grab: since the poll was
	// chosen, until it is answered.
	SpanStart = "start"
	SpanRun   = "run"
	// SpanFailed is an attempt that failed, of a task that is not sampled. A sampled one has SpanRun and SpanFail.
	SpanFailed = "failed attempt"
	// SpanExpired is an attempt whose end its worker did not report.
	SpanExpired  = "expired attempt"
	SpanComplete = "complete"
	SpanFail     = "fail"
	SpanHandBack = "hand back"
)

// Task is the task of a span.
type Task struct {
	Domain, Tasklist, Type, ID string
	Partition                  int
}

// Attributes are those of a span of that name, and more. Empty ones are left out.
func (t Task) Attributes(span string, more ...attribute.KeyValue) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, 10+len(more))
	if kind := kinds[span]; kind != "" {
		all = append(all, attribute.String(MessagingKind, kind), attribute.String(MessagingOperation, span))
	}
	all = append(all, attribute.String(MessagingSystem, System), Attribute(Partition, t.Partition))
	for _, x := range [...]struct{ key, value string }{
		{SpanPrefix + Domain, t.Domain},
		{SpanPrefix + Tasklist, t.Tasklist},
		{MessagingDestination, t.Tasklist},
		{SpanPrefix + Type, t.Type},
		{SpanPrefix + TaskID, t.ID},
		{MessagingMessageID, t.ID},
	} {
		if x.value != "" {
			all = append(all, attribute.String(x.key, x.value))
		}
	}
	return append(all, more...)
}

// Attribute is the attribute of a span with one of the keys.
func Attribute[V string | int](key string, value V) attribute.KeyValue {
	switch v := any(value).(type) {
	case int:
		return attribute.Int(SpanPrefix+key, v)
	case string:
		return attribute.String(SpanPrefix+key, v)
	}
	panic("signals: no such type")
}

// SpanKind is the kind of the span of that name.
func SpanKind(name string) trace.SpanKind {
	switch name {
	case SpanSubmit, SpanComplete, SpanFail, SpanHandBack:
		return trace.SpanKindServer
	case SpanAppend, SpanTrigger, SpanSchedule:
		return trace.SpanKindProducer
	case SpanApply, SpanRun:
		return trace.SpanKindConsumer
	case SpanGrab:
		return trace.SpanKindClient
	}
	return trace.SpanKindInternal
}
