package validate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
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

// TestRetryRulesAreResolvedFieldByField: the task's own, else the type's; a list replaces the type's whole. What is the default
// is not stored, so that records are as they were.
func TestRetryRulesAreResolvedFieldByField(t *testing.T) {
	typed := &yardv1.RetryPolicy{
		NonRetryable: []string{"a", "b"}, ByError: []*yardv1.ErrorRetry{{ErrorType: "c", MaxAttempts: 2, Backoff: 3, InitialIntervalMs: 4, MaxIntervalMs: 5}},
		Jitter: yardv1.Jitter_JITTER_FULL, MaxDeliveries: 7, OnLost: yardv1.OnLost_ON_LOST_DEAD, OnTimeout: yardv1.OnTimeout_ON_TIMEOUT_DEAD,
	}
	stored := []*logv1.ErrorRetry{{ErrorType: "c", MaxAttempts: 2, Backoff: 3, InitialIntervalMs: 4, MaxIntervalMs: 5}}
	for name, c := range map[string]struct {
		own, typed *yardv1.RetryPolicy
		want       *logv1.Policy
	}{
		"neither": {nil, nil, &logv1.Policy{}},
		"the type's": {nil, typed, &logv1.Policy{
			NonRetryable: []string{"a", "b"}, ByError: stored, Jitter: 2, MaxDeliveries: 7, OnLost: 3, OnTimeout: 2,
		}},
		"the task's": {typed, nil, &logv1.Policy{
			NonRetryable: []string{"a", "b"}, ByError: stored, Jitter: 2, MaxDeliveries: 7, OnLost: 3, OnTimeout: 2,
		}},
		"lists are replaced": {
			&yardv1.RetryPolicy{NonRetryable: []string{"x"}, ByError: []*yardv1.ErrorRetry{{ErrorType: "y"}}, MaxDeliveries: 1}, typed,
			&logv1.Policy{NonRetryable: []string{"x"}, ByError: []*logv1.ErrorRetry{{ErrorType: "y"}}, Jitter: 2, MaxDeliveries: 1, OnLost: 3, OnTimeout: 2},
		},
		"back to the default": {
			&yardv1.RetryPolicy{Jitter: yardv1.Jitter_JITTER_SLIGHT, OnLost: yardv1.OnLost_ON_LOST_RETRY, OnTimeout: yardv1.OnTimeout_ON_TIMEOUT_FAIL}, typed,
			&logv1.Policy{NonRetryable: []string{"a", "b"}, ByError: stored, MaxDeliveries: 7},
		},
		"others": {
			&yardv1.RetryPolicy{Jitter: yardv1.Jitter_JITTER_NONE, OnLost: yardv1.OnLost_ON_LOST_FAIL}, nil, &logv1.Policy{Jitter: 4, OnLost: 2},
		},
	} {
		got := Policy(&yardv1.NewTask{Retry: c.own}, &yardv1.TaskType{Retry: c.typed})
		plain := Policy(&yardv1.NewTask{}, nil)
		c.want.MaxAttempts, c.want.InitialIntervalMs, c.want.Backoff = plain.MaxAttempts, plain.InitialIntervalMs, plain.Backoff
		c.want.MaxIntervalMs, c.want.StartToCloseMs = plain.MaxIntervalMs, plain.StartToCloseMs
		if !proto.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A first wait that is longer than a maximum that was not set with it counts: the maximum follows.
func TestTheMaximumFollowsTheFirstWait(t *testing.T) {
	hour, minute := int64(3_600_000), int64(60_000)
	for name, c := range map[string]struct {
		own, typed     *yardv1.RetryPolicy
		initial, limit int64
	}{
		"the default":    {&yardv1.RetryPolicy{InitialIntervalMs: hour}, nil, hour, hour},
		"of the type":    {nil, &yardv1.RetryPolicy{InitialIntervalMs: hour}, hour, hour},
		"the type's":     {&yardv1.RetryPolicy{InitialIntervalMs: hour}, &yardv1.RetryPolicy{MaxIntervalMs: minute}, hour, hour},
		"the task's own": {&yardv1.RetryPolicy{MaxIntervalMs: minute}, &yardv1.RetryPolicy{InitialIntervalMs: hour}, hour, minute},
		"shorter":        {&yardv1.RetryPolicy{InitialIntervalMs: 1}, &yardv1.RetryPolicy{MaxIntervalMs: minute}, 1, minute},
	} {
		p := Policy(&yardv1.NewTask{Retry: c.own}, &yardv1.TaskType{Retry: c.typed})
		if p.InitialIntervalMs != c.initial || p.MaxIntervalMs != c.limit {
			t.Errorf("%s: %d up to %d", name, p.InitialIntervalMs, p.MaxIntervalMs)
		}
	}
}
