package outcome

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// traceOutcomes adds the span of each outcome that history knows a trace of, or
// else the request's.
func (o *Outcomes) traceOutcomes(s *share, verdicts []*logv1.EventVerdict) {
	r := s.request
	if !r.traced || !o.Tracing.On() {
		return
	}
	now := o.Clock.Now()
	for k, i := range s.entries {
		parent := verdicts[k].Trace
		if len(parent) == 0 {
			parent = r.call.Trace
		}
		if !telemetry.Sampled(parent) {
			continue
		}
		o.traceOutcome(parent, s, k, now, r.verdicts[i])
	}
}

// traceOutcome adds the span of one outcome. An attempt that failed is an error, and so is an outcome that is refused.
func (o *Outcomes) traceOutcome(parent []byte, s *share, k int, now time.Time, v *yardv1.Verdict) {
	e, call := s.events[k], &s.request.call
	name, why := signals.SpanComplete, ""
	switch e.Kind {
	case logv1.EventKind_EVENT_KIND_FAILED:
		name, why = signals.SpanFail, "the attempt failed: "+e.Message
	case logv1.EventKind_EVENT_KIND_RELEASED:
		name = signals.SpanHandBack
	}
	if v.Code != CodeOK {
		why = v.Code + ": " + v.Message
	}
	about := signals.Task{Domain: call.Domain, ID: v.TaskId, Partition: s.partition}.Attributes(name, signals.Attribute(signals.Code, v.Code))
	if why != "" {
		o.Tracing.Failed(parent, name, signals.SpanKind(name), call.Now, now, why, about...)
		return
	}
	o.Tracing.Span(parent, name, signals.SpanKind(name), call.Now, now, about...)
}
