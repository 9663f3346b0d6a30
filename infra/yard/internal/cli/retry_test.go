package cli

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// What a policy has for error types is written as it is read.
func TestRulesOfErrorsOnTheCommandLine(t *testing.T) {
	for text, want := range map[string]yard.ErrorRetry{
		"busy:max-attempts=20,initial-interval=1m0s,backoff=1.5,max-interval=1h0m0s": {
			ErrorType: "busy", MaxAttempts: 20, InitialInterval: time.Minute, Backoff: 1.5, MaxInterval: time.Hour,
		},
		"http:503:max-attempts=2":  {ErrorType: "http:503", MaxAttempts: 2},
		"timeout:max-interval=5ms": {ErrorType: "timeout", MaxInterval: 5 * time.Millisecond},
	} {
		var f errorFlag
		if err := f.Set(text); err != nil || !slices.Equal(f, errorFlag{want}) || f.String() != text {
			t.Errorf("%s: %+v %v, written %q", text, f, err, f.String())
		}
		if err := f.Set("more:backoff=3"); err != nil || f.String() != text+" more:backoff=3" {
			t.Errorf("two: %+v %v", f, err)
		}
		if err := f.Set(""); err != nil || len(f) > 0 {
			t.Errorf("none: %+v %v", f, err)
		}
	}
	for _, text := range []string{"busy", ":max-attempts=1", "busy:", "busy:attempts=1", "busy:max-attempts=x", "busy:max-interval=5", "busy:initial-interval=", "busy:backoff=many"} {
		if err := new(errorFlag).Set(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

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
	if noPolicy(full) || !noPolicy(yard.RetryPolicy{}) || !noPolicy(yard.RetryPolicy{NonRetryable: []string{}}) {
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
		policyFlags(flags, new(yard.RetryPolicy))
		if err := flags.Parse([]string{"--" + flag + "=" + want.value}); err != nil {
			t.Fatal(err)
		}
		got, expected := full, full
		if err := overlay(flags, func(into *pflag.FlagSet) { policyFlags(into, &got) }); err != nil {
			t.Fatal(err)
		}
		want.change(&expected)
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("--%s: %+v, want %+v", flag, got, expected)
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	policyFlags(flags, new(yard.RetryPolicy))
	for _, wrong := range []string{"--jitter=some", "--on-lost=never", "--on-timeout=retry"} {
		if err := flags.Parse([]string{wrong}); err == nil {
			t.Errorf("%s was taken", wrong)
		}
	}
}
