package validate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// fullPolicy is as large as a policy may be.
func fullPolicy() *yardv1.RetryPolicy {
	p := &yardv1.RetryPolicy{
		MaxAttempts: 10_000, Jitter: yardv1.Jitter_JITTER_NONE, MaxDeliveries: 100_000,
		OnLost: yardv1.OnLost_ON_LOST_DEAD, OnTimeout: yardv1.OnTimeout_ON_TIMEOUT_DEAD,
	}
	for i := range 16 {
		name := fmt.Sprintf("%02d%s", i, strings.Repeat("x", 126))
		p.NonRetryable = append(p.NonRetryable, name)
		p.ByError = append(p.ByError, &yardv1.ErrorRetry{
			ErrorType: name, InitialIntervalMs: 86_400_000, Backoff: 100, MaxIntervalMs: 2_592_000_000, MaxAttempts: 10_000,
		})
	}
	return p
}

// TestRetryPolicyRefuses: of a task and of a type alike, one entry is named by its place in its list.
func TestRetryPolicyRefuses(t *testing.T) {
	for path, change := range map[string]func(*yardv1.RetryPolicy){
		"/max_attempts":                   func(r *yardv1.RetryPolicy) { r.MaxAttempts = 10_001 },
		"/max_deliveries":                 func(r *yardv1.RetryPolicy) { r.MaxDeliveries = 100_001 },
		"/max_deliveries ":                func(r *yardv1.RetryPolicy) { r.MaxDeliveries = -1 },
		"/jitter":                         func(r *yardv1.RetryPolicy) { r.Jitter = 5 },
		"/jitter ":                        func(r *yardv1.RetryPolicy) { r.Jitter = -1 },
		"/on_lost":                        func(r *yardv1.RetryPolicy) { r.OnLost = 4 },
		"/on_timeout":                     func(r *yardv1.RetryPolicy) { r.OnTimeout = 3 },
		"/non_retryable":                  func(r *yardv1.RetryPolicy) { r.NonRetryable = append(r.NonRetryable, "more") },
		"/non_retryable/3":                func(r *yardv1.RetryPolicy) { r.NonRetryable[3] = "" },
		"/non_retryable/15":               func(r *yardv1.RetryPolicy) { r.NonRetryable[15] = r.NonRetryable[0] },
		"/non_retryable/15 ":              func(r *yardv1.RetryPolicy) { r.NonRetryable[15] = r.NonRetryable[14] },
		"/non_retryable/0":                func(r *yardv1.RetryPolicy) { r.NonRetryable[0] += "x" },
		"/non_retryable/1":                func(r *yardv1.RetryPolicy) { r.NonRetryable[1] = "\xff" },
		"/by_error":                       func(r *yardv1.RetryPolicy) { r.ByError = append(r.ByError, &yardv1.ErrorRetry{ErrorType: "more"}) },
		"/by_error/0":                     func(r *yardv1.RetryPolicy) { r.ByError[0] = nil },
		"/by_error/0/error_type":          func(r *yardv1.RetryPolicy) { r.ByError[0].ErrorType = "" },
		"/by_error/2/error_type":          func(r *yardv1.RetryPolicy) { r.ByError[2].ErrorType = r.ByError[1].ErrorType },
		"/by_error/4/error_type":          func(r *yardv1.RetryPolicy) { r.ByError[4].ErrorType += "x" },
		"/by_error/5/error_type":          func(r *yardv1.RetryPolicy) { r.ByError[5].ErrorType = "\xff" },
		"/by_error/6/max_attempts":        func(r *yardv1.RetryPolicy) { r.ByError[6].MaxAttempts = 10_001 },
		"/by_error/7/max_attempts":        func(r *yardv1.RetryPolicy) { r.ByError[7].MaxAttempts = -1 },
		"/by_error/8/backoff":             func(r *yardv1.RetryPolicy) { r.ByError[8].Backoff = math.NaN() },
		"/by_error/9/max_interval_ms":     func(r *yardv1.RetryPolicy) { r.ByError[9].MaxIntervalMs = 2_592_000_001 },
		"/by_error/1/initial_interval_ms": func(r *yardv1.RetryPolicy) { r.ByError[1].InitialIntervalMs, r.ByError[1].MaxIntervalMs = 11, 10 },
		"/initial_interval_ms":            func(r *yardv1.RetryPolicy) { r.InitialIntervalMs, r.MaxIntervalMs = 11, 10 },
		"/by_error/0/initial_interval_ms": func(r *yardv1.RetryPolicy) { r.ByError[0].InitialIntervalMs = 86_400_001 },
	} {
		own, typed := request(5), &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: "email.send", Retry: fullPolicy()}}
		own.Tasks[3].Retry = fullPolicy()
		testkit.NoError(t, Submit(own, now, Form{}))
		testkit.NoError(t, PutType(typed))
		change(own.Tasks[3].Retry)
		change(typed.Type.Retry)
		path = strings.TrimSpace(path)
		wants{fault.InvalidArgument, "/tasks/3/retry" + path}.check(t, Submit(own, now, Form{}))
		wants{fault.InvalidArgument, "/type/retry" + path}.check(t, PutType(typed))
	}
}
