package settings

import (
	"reflect"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/tasks"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestRulesOfPoliciesAreOverlaid: each flag that is given replaces its field, and no other; a policy in the form of the API comes back.
func TestRulesOfPoliciesAreOverlaid(t *testing.T) {
	full := yard.RetryPolicy{
		MaxAttempts: 3, InitialInterval: time.Second, Backoff: 2, MaxInterval: time.Minute,
		NonRetryable: []string{"a", "b"}, ByError: []yard.ErrorRetry{{ErrorType: "c", MaxAttempts: 4, InitialInterval: time.Second, Backoff: 3, MaxInterval: time.Hour}},
		Jitter: yard.JitterFull, MaxDeliveries: 5, OnLost: yard.OnLostDead, OnTimeout: yard.OnTimeoutDead,
	}
	if got := yard.RetryPolicyOf(yard.TaskType{Retry: &full}.Wire().Retry); !reflect.DeepEqual(*got, full) {
		t.Errorf("it comes back as %+v", got)
	}
	if tasks.NoPolicy(full) || !tasks.NoPolicy(yard.RetryPolicy{}) || !tasks.NoPolicy(yard.RetryPolicy{NonRetryable: []string{}}) {
		t.Error("there is a policy where none is, or none where one is")
	}
	for flag, want := range map[string]struct {
		value  string
		change func(*yard.RetryPolicy)
	}{
		"non-retryable":  {"x,y", func(r *yard.RetryPolicy) { r.NonRetryable = []string{"x", "y"} }},
		"by-error":       {"x:backoff=1", func(r *yard.RetryPolicy) { r.ByError = []yard.ErrorRetry{{ErrorType: "x", Backoff: 1}} }},
		"jitter":         {"none", func(r *yard.RetryPolicy) { r.Jitter = yard.JitterNone }},
		"max-deliveries": {"9", func(r *yard.RetryPolicy) { r.MaxDeliveries = 9 }},
		"on-lost":        {"fail", func(r *yard.RetryPolicy) { r.OnLost = yard.OnLostFail }},
		"on-timeout":     {"", func(r *yard.RetryPolicy) { r.OnTimeout = "" }},
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		tasks.PolicyFlags(flags, new(yard.RetryPolicy))
		testkit.NoError(t, flags.Parse([]string{"--" + flag + "=" + want.value}))
		got, expected := full, full
		testkit.NoError(t, overlay(flags, func(into *pflag.FlagSet) { tasks.PolicyFlags(into, &got) }))
		want.change(&expected)
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("--%s: %+v, want %+v", flag, got, expected)
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	tasks.PolicyFlags(flags, new(yard.RetryPolicy))
	for _, wrong := range []string{"--jitter=some", "--on-lost=never", "--on-timeout=retry"} {
		if err := flags.Parse([]string{wrong}); err == nil {
			t.Errorf("%s was taken", wrong)
		}
	}
}
