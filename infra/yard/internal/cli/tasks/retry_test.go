package tasks

import (
	"slices"
	"testing"
	"time"

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
