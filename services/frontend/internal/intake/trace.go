package intake

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
)

// startSubmit begins the span of a submit and returns the context that its tasks get. A caller's context decides whether
// they are traced; without one the domain decides, or else the sampler of the process.
func (in *Intake) startSubmit(c call.Call) (trace.Span, []byte) {
	about := signals.Attribute(signals.Domain, c.Domain)
	if len(c.Trace) > 0 {
		return in.Tracing.Start(c.Trace, signals.SpanSubmit, signals.SpanKind(signals.SpanSubmit), c.Now, about)
	}
	return in.Tracing.Begin(in.Catalog.TraceRatio(c.Domain), signals.SpanSubmit, signals.SpanKind(signals.SpanSubmit), c.Now, about)
}

// startTasks begins the spans of the tasks that bring a trace of their own. What
// becomes of such a task hangs under its span, as with those of the request.
func (in *Intake) startTasks(s *submission, request []byte) {
	if !in.Tracing.On() {
		return
	}
	for i, r := range s.accepted.Records {
		if !telemetry.Sampled(r.Trace) || string(r.Trace) == string(request) {
			continue
		}
		if s.spans == nil {
			s.spans = make([]trace.Span, s.tasks())
		}
		s.spans[i], r.Trace = in.Tracing.Start(r.Trace, signals.SpanSubmit, signals.SpanKind(signals.SpanSubmit), s.call.Now)
	}
}

// traceStored ends the spans of a submit and adds those of the append.
func (in *Intake) traceStored(s *submission, sent, acked time.Time) {
	if !in.Tracing.On() {
		return
	}
	sent, acked = in.Clock.At(sent), in.Clock.At(acked)
	end := func(span trace.Span, about signals.Task, more ...attribute.KeyValue) {
		in.Tracing.Span(telemetry.FromSpan(span.SpanContext()), signals.SpanAppend, signals.SpanKind(signals.SpanAppend), sent, acked,
			about.Attributes(signals.SpanAppend, more...)...)
		span.SetAttributes(about.Attributes(signals.SpanSubmit, more...)...)
		span.End(trace.WithTimestamp(acked))
	}
	end(s.span, s.subject(0), attribute.Int(signals.MessagingBatchCount, s.tasks()))
	for i, span := range s.spans {
		if span != nil {
			end(span, s.subject(i))
		}
	}
}

// endSpans ends the spans of a submit that was refused.
func (s *submission) endSpans(err error) {
	code := string(fault.CodeOf(err))
	for _, span := range append(s.spans, s.span) {
		if span != nil {
			span.SetAttributes(signals.Attribute(signals.Code, code))
			span.SetStatus(codes.Error, err.Error())
			span.End()
		}
	}
}

// subject is task i for its spans.
func (s *submission) subject(i int) signals.Task {
	r := s.accepted.Records[i]
	id := s.id(i)
	if s.results != nil { // its parts have made the ids
		id, _ = ids.ParseTaskID(s.results[i].TaskId)
	}
	return signals.Task{Domain: r.Domain, Tasklist: r.Tasklist, Type: r.Type, ID: id.String(), Partition: id.Partition()}
}
