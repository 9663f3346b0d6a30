package yard

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// TestChoicesOfRetryPoliciesAreKnown: each one of the API is sent by its name, and another name is refused by the engine.
func TestChoicesOfRetryPoliciesAreKnown(t *testing.T) {
	for _, policy := range []RetryPolicy{{Jitter: "unknown"}, {OnLost: "unknown"}, {OnTimeout: "unknown"}} {
		if w := policy.wire(); w.Jitter+yardv1.Jitter(w.OnLost)+yardv1.Jitter(w.OnTimeout) != -1 {
			t.Errorf("%+v is sent as %v", policy, w)
		}
	}
	for n := range yardv1.Jitter_name {
		if j := (&RetryPolicy{Jitter: Jitter(yardv1.Jitter(n).Name())}); j.wire().Jitter != yardv1.Jitter(n) {
			t.Errorf("%+v is sent as %v", j, j.wire())
		}
	}
	for n := range yardv1.OnLost_name {
		if o := (&RetryPolicy{OnLost: OnLost(yardv1.OnLost(n).Name())}); o.wire().OnLost != yardv1.OnLost(n) {
			t.Errorf("%+v is sent as %v", o, o.wire())
		}
	}
	for n := range yardv1.OnTimeout_name {
		if o := (&RetryPolicy{OnTimeout: OnTimeout(yardv1.OnTimeout(n).Name())}); o.wire().OnTimeout != yardv1.OnTimeout(n) {
			t.Errorf("%+v is sent as %v", o, o.wire())
		}
	}
}
