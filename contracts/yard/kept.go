package yard

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// An attempt that failed may stay with its worker (RetryPolicy.PinnedFor): the grant says that it may, the failure that the worker would, and the verdict
// that it does. It holds its slot until then, and until the next try, which is an attempt like any other under the same token.

// stopping is why a worker hands attempts back that ends.
const stopping = "the worker was stopping"

// asksToKeep has a failure say that the worker would try again in place, and tells whether it does.
func (s *session) asksToKeep(h *held, f *yardv1.Failure) bool {
	if h.pinned == nil || f.NonRetryable || f.Snooze || s.leaves() != "" {
		return false
	}
	f.Keep, f.Failures = true, int32Of(h.pinned.Failures)
	return true
}

// leaves tells why the worker begins no further try; "" = it does.
func (s *session) leaves() string {
	select {
	case <-s.polling.Done():
		return stopping
	case <-s.drained.begun():
		return "the worker is drained"
	default:
		return ""
	}
}

// pin makes h an attempt that the worker may keep. Its handler gets a copy of what it may change, so that the next try is given the same.
func (h *held) pin(a Attempt) {
	h.pinned, h.Attempt = &a, a
	h.Payload.Data, h.Headers = slices.Clone(a.Payload.Data), maps.Clone(a.Headers)
}

// answered is called when the engine has answered a failure after which the worker would try again in place; v is nil where it has not.
func (s *session) answered(failed *held, v *yardv1.Verdict) {
	if !v.GetKept() {
		s.slots.letGo()
		return
	}
	next := *failed.pinned
	next.Number++
	next.Failures = int(v.Failures)
	next.Deadline = time.Now().Add(time.Duration(v.TimeoutMs) * time.Millisecond)
	h := &held{traceparent: failed.traceparent, beats: s.beats, handle: failed.handle}
	h.pin(next)
	h.expire()
	ctx := s.watch(h)
	if v.CancelRequested {
		h.cancel(ErrCancelled)
	}
	go s.tryAgain(ctx, h, time.Duration(v.RetryInMs)*time.Millisecond)
}

// tryAgain runs the next try of an attempt that is kept, when its time has come, unless something comes between: then it is handed back, which counts no
// failure, or it is lost already.
func (s *session) tryAgain(ctx context.Context, h *held, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.polling.Done():
	case <-s.drained.begun():
	}
	why := s.leaves()
	switch cause := context.Cause(ctx); {
	case cause == ErrLostAttempt:
		s.log.Debug("an attempt was lost before its next try in place", "task_id", h.TaskID, "attempt", h.Number)
		s.beats.remove(h)
		h.end()
		s.slots.letGo()
		return
	case cause == ErrCancelled:
		why = "its task was cancelled before the next try"
	case cause != nil && why == "":
		why = "its time was over before the next try"
	}
	if why == "" && s.slots.runAgain() {
		h.Deadline, _ = ctx.Deadline() // an update may have moved it
		s.execute(ctx, h)
		return
	}
	h.end()
	s.reportFailure(h, handBack(&h.Attempt, cmp.Or(why, stopping)))
	s.slots.letGo()
}
