package validate

import (
	"cmp"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/duelist"
)

// Spans of a timers.count.
const (
	SpanMin, SpanMax, SpanDefault = time.Minute, 7 * 24 * time.Hour, time.Hour
	// SpansMax is how many are within the time that is looked ahead.
	SpansMax = 1000
	// LookDefault is how far a timers.count looks ahead.
	LookDefault = 24 * time.Hour
)

// CountTimers checks a timers.count and fills in its defaults.
func CountTimers(req *yardv1.CountTimersRequest) error {
	req.WithinMs, req.SpanMs = cmp.Or(req.WithinMs, ms(LookDefault)), cmp.Or(req.SpanMs, ms(SpanDefault))
	err := firstError(
		ifNamed(name, "/tasklist", req.Tasklist),
		ifNamed(typeName, "/type", req.Type),
		between("/within_ms", req.WithinMs, 1, ms(AheadMax)),
		between("/span_ms", req.SpanMs, ms(SpanMin), ms(SpanMax)),
	)
	switch {
	case err != nil:
		return err
	case req.SpanMs%ms(SpanMin) != 0:
		return invalid("/span_ms", "%d is no whole number of minutes", req.SpanMs)
	case (req.WithinMs-1)/req.SpanMs >= SpansMax:
		return invalid("/span_ms", "%d spans are within %d ms, at most %d are allowed", (req.WithinMs-1)/req.SpanMs+1, req.WithinMs, SpansMax)
	}
	return nil
}

// due checks a list by due time.
func due(req *yardv1.ListRequest) error {
	for _, other := range []struct {
		path string
		set  bool
	}{
		{"/group", req.Group != ""}, {"/order_key", req.OrderKey != ""}, {"/blocked", req.Blocked}, {"/batch_id", req.BatchId != ""}, {"/headers", len(req.Headers) > 0},
	} {
		if other.set {
			return invalid(other.path, "excludes due_within_ms: the timer store has no index for it")
		}
	}
	for i, s := range req.States {
		if s != yardv1.TaskState_TASK_STATE_WAITING && s != yardv1.TaskState_TASK_STATE_BACKOFF {
			return invalid(at("/states", i), "with due_within_ms it must be waiting or backoff")
		}
	}
	if _, ok := duelist.Parse(req.Cursor); !ok {
		return notNext()
	}
	return between("/due_within_ms", req.DueWithinMs, 1, ms(AheadMax))
}
