package gateway

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// startSubmit begins the span of a submit and returns the context that its tasks
// get: the span's, where it is recorded; else the caller's, passed through.
func (g *Gateway) startSubmit(c Call) (trace.Span, []byte) {
	span, ctx := g.Tracing.Start(c.Trace, signals.SpanSubmit, signals.SpanKind(signals.SpanSubmit), c.Now, signals.Attribute(signals.Domain, c.Domain))
	if len(c.Trace) == 0 && !telemetry.Sampled(ctx) {
		return span, nil // the sampler does not want it: 25 bytes less in each record
	}
	return span, ctx
}

// startTasks begins the spans of the tasks that bring a trace of their own. What
// becomes of such a task hangs under its span, as with those of the request.
func (g *Gateway) startTasks(s *submission, request []byte) {
	if !g.Tracing.On() {
		return
	}
	for i, r := range s.accepted.Records {
		if !telemetry.Sampled(r.Trace) || string(r.Trace) == string(request) {
			continue
		}
		if s.spans == nil {
			s.spans = make([]trace.Span, s.tasks())
		}
		s.spans[i], r.Trace = g.Tracing.Start(r.Trace, signals.SpanSubmit, signals.SpanKind(signals.SpanSubmit), s.call.Now)
	}
}

// traceStored ends the spans of a submit and adds those of the append.
func (g *Gateway) traceStored(s *submission, sent, acked time.Time) {
	if !g.Tracing.On() {
		return
	}
	sent, acked = g.Clock.At(sent), g.Clock.At(acked)
	end := func(span trace.Span, about signals.Task, more ...attribute.KeyValue) {
		g.Tracing.Span(telemetry.FromSpan(span.SpanContext()), signals.SpanAppend, signals.SpanKind(signals.SpanAppend), sent, acked,
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

// traceOutcomes adds the span of each outcome that history knows a trace of, or
// else the request's.
func (g *Gateway) traceOutcomes(s *share, verdicts []*logv1.EventVerdict) {
	r := s.request
	if !r.traced || !g.Tracing.On() {
		return
	}
	now := g.Clock.Now()
	for k, i := range s.entries {
		parent := verdicts[k].Trace
		if len(parent) == 0 {
			parent = r.call.Trace
		}
		if !telemetry.Sampled(parent) {
			continue
		}
		g.traceOutcome(parent, s, k, now, r.verdicts[i])
	}
}

// traceOutcome adds the span of one outcome. An attempt that failed is an error, and so is an outcome that is refused.
func (g *Gateway) traceOutcome(parent []byte, s *share, k int, now time.Time, v *yardv1.Verdict) {
	e, call := s.events[k], &s.request.call
	name, why := signals.SpanComplete, ""
	switch e.Kind {
	case logv1.EventKind_EVENT_KIND_FAILED:
		name, why = signals.SpanFail, "the attempt failed: "+e.Message
	case logv1.EventKind_EVENT_KIND_RELEASED:
		name = signals.SpanHandBack
	}
	if v.Code != codeOK {
		why = v.Code + ": " + v.Message
	}
	about := signals.Task{Domain: call.Domain, ID: v.TaskId, Partition: s.partition}.Attributes(name, signals.Attribute(signals.Code, v.Code))
	if why != "" {
		g.Tracing.Failed(parent, name, signals.SpanKind(name), call.Now, now, why, about...)
		return
	}
	g.Tracing.Span(parent, name, signals.SpanKind(name), call.Now, now, about...)
}
