package terms

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

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
		c.want.MaxIntervalMs, c.want.StartToCloseMs, c.want.OfType = plain.MaxIntervalMs, plain.StartToCloseMs, got.OfType
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

// TestAPolicyNamesTheFieldsOfItsType: each field that a task does not set follows the type, and no other.
func TestAPolicyNamesTheFieldsOfItsType(t *testing.T) {
	of := &yardv1.TaskType{Revision: 9}
	all := Policy(nil, of)
	testkit.MustEqual(t, "the fields of a type", all.OfType, 1<<13-2)
	testkit.MustEqual(t, "the revision", all.TypeRevision, 9)
	testkit.MustEqual(t, "without a type", Policy(&yardv1.NewTask{}, nil).TypeRevision, 0)
	for field, own := range map[int]*yardv1.NewTask{
		1:  {Retry: &yardv1.RetryPolicy{MaxAttempts: 1}},
		2:  {Retry: &yardv1.RetryPolicy{InitialIntervalMs: 1}},
		3:  {Retry: &yardv1.RetryPolicy{Backoff: 1}},
		4:  {Retry: &yardv1.RetryPolicy{MaxIntervalMs: 1}},
		5:  {StartToCloseMs: 1},
		6:  {HeartbeatTimeoutMs: 1},
		7:  {Retry: &yardv1.RetryPolicy{NonRetryable: []string{"a"}}},
		8:  {Retry: &yardv1.RetryPolicy{ByError: []*yardv1.ErrorRetry{{ErrorType: "a"}}}},
		9:  {Retry: &yardv1.RetryPolicy{Jitter: yardv1.Jitter_JITTER_SLIGHT}},
		10: {Retry: &yardv1.RetryPolicy{MaxDeliveries: 1}},
		11: {Retry: &yardv1.RetryPolicy{OnLost: yardv1.OnLost_ON_LOST_RETRY}},
		12: {Retry: &yardv1.RetryPolicy{OnTimeout: yardv1.OnTimeout_ON_TIMEOUT_FAIL}},
	} {
		testkit.Equal(t, "the fields that are left", Policy(own, of).OfType, all.OfType&^(1<<field))
	}
}
