package gateway

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Attributes of spans.
const (
	attrDomain    = "yard.domain"
	attrTasklist  = "yard.tasklist"
	attrType      = "yard.type"
	attrTaskID    = "yard.task_id"
	attrPartition = "yard.partition"
	attrTasks     = "yard.tasks"
	attrCode      = "yard.code"
)

// startSubmit begins the span of a submit and returns the context that its tasks
// get: the span's, where it is recorded; else the caller's, passed through.
func (g *Gateway) startSubmit(c Call) (trace.Span, []byte) {
	span, ctx := g.Tracing.Start(c.Trace, "submit", trace.SpanKindServer, c.Now, attribute.String(attrDomain, c.Domain))
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
		s.spans[i], r.Trace = g.Tracing.Start(r.Trace, "submit", trace.SpanKindServer, s.call.Now)
	}
}

// traceStored ends the spans of a submit and adds those of the append.
func (g *Gateway) traceStored(s *submission, sent, acked time.Time) {
	if !g.Tracing.On() {
		return
	}
	sent, acked = g.Clock.At(sent), g.Clock.At(acked)
	end := func(span trace.Span, about []attribute.KeyValue) {
		g.Tracing.Span(telemetry.FromSpan(span.SpanContext()), "append", trace.SpanKindProducer, sent, acked, about...)
		span.SetAttributes(about...)
		span.End(trace.WithTimestamp(acked))
	}
	end(s.span, append(s.attributes(0), attribute.Int(attrTasks, s.tasks())))
	for i, span := range s.spans {
		if span != nil {
			end(span, s.attributes(i))
		}
	}
}

// endSpans ends the spans of a submit that was refused.
func (s *submission) endSpans(err error) {
	code := attribute.String(attrCode, string(fault.CodeOf(err)))
	for _, span := range append(s.spans, s.span) {
		if span != nil {
			span.SetAttributes(code)
			span.End()
		}
	}
}

func (s *submission) attributes(i int) []attribute.KeyValue {
	r := s.accepted.Records[i]
	return []attribute.KeyValue{
		attribute.String(attrDomain, r.Domain),
		attribute.String(attrTasklist, r.Tasklist),
		attribute.String(attrType, r.Type),
		attribute.String(attrTaskID, s.id(i).String()),
		attribute.Int(attrPartition, s.partition),
	}
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
		g.Tracing.Span(parent, "complete", trace.SpanKindServer, r.call.Now, now,
			attribute.String(attrDomain, r.call.Domain),
			attribute.String(attrTaskID, r.verdicts[i].TaskId),
			attribute.Int(attrPartition, s.partition),
			attribute.String(attrCode, r.verdicts[i].Code))
	}
}
