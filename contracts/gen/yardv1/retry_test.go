package yardv1_test

import (
	"encoding"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// TestEnumsOfRetryPoliciesAreWrittenByName, and read back; other names are refused.
func TestEnumsOfRetryPoliciesAreWrittenByName(t *testing.T) {
	for n, name := range map[int32]string{0: "", 1: "slight", 2: "full", 3: "equal", 4: "none"} {
		roundTrip(t, yardv1.Jitter(n), new(yardv1.Jitter), name, yardv1.Jitter(n).Name())
	}
	for n, name := range map[int32]string{0: "", 1: "retry", 2: "fail", 3: "dead"} {
		roundTrip(t, yardv1.OnLost(n), new(yardv1.OnLost), name, yardv1.OnLost(n).Name())
	}
	for n, name := range map[int32]string{0: "", 1: "fail", 2: "dead"} {
		roundTrip(t, yardv1.OnTimeout(n), new(yardv1.OnTimeout), name, yardv1.OnTimeout(n).Name())
	}
	for _, text := range []string{"", "FULL", "Dead", "unspecified", "nonsense", "fail "} {
		for _, into := range []encoding.TextUnmarshaler{new(yardv1.Jitter), new(yardv1.OnLost), new(yardv1.OnTimeout)} {
			if err := into.UnmarshalText([]byte(text)); err == nil {
				t.Errorf("%T takes %q", into, text)
			}
		}
	}
}

// TestOnFullIsWrittenByName, and nothing is the default.
func TestOnFullIsWrittenByName(t *testing.T) {
	for n, name := range map[int32]string{0: "wait", 1: "reject_newest", 2: "cancel_oldest"} {
		roundTrip(t, yardv1.OnFull(n), new(yardv1.OnFull), name, yardv1.OnFull(n).Name())
	}
	back := yardv1.OnFull_ON_FULL_CANCEL_OLDEST
	if err := back.UnmarshalText(nil); err != nil || back != yardv1.OnFull_ON_FULL_WAIT {
		t.Errorf("nothing is %v: %v", back, err)
	}
	for _, text := range []string{"REJECT_NEWEST", "Wait", "reject", "wait "} {
		if err := new(yardv1.OnFull).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("it takes %q", text)
		}
	}
}

func roundTrip[E comparable, P interface {
	*E
	encoding.TextUnmarshaler
}](t *testing.T, e E, back P, want, name string) {
	t.Helper()
	text, err := any(e).(encoding.TextMarshaler).MarshalText()
	if err != nil || string(text) != want || name != want {
		t.Errorf("%v is written as %q, %v", e, text, err)
	}
	if err := back.UnmarshalText(text); (err == nil) != (want != "") || want != "" && *back != e {
		t.Errorf("%q is read as %v, %v", text, *back, err)
	}
}

// TestRetryPoliciesAsJSON: what is not said is left out, and what is comes back.
func TestRetryPoliciesAsJSON(t *testing.T) {
	for text, policy := range map[string]*yardv1.RetryPolicy{
		`{"tasks":[{"type":"a","retry":{}}]}`: {},
		`{"tasks":[{"type":"a","retry":{"non_retryable":["x"],"by_error":[{"error_type":"y","max_attempts":2}],"jitter":"full","max_deliveries":3,"on_lost":"dead","on_timeout":"dead"}}]}`: {
			NonRetryable: []string{"x"}, ByError: []*yardv1.ErrorRetry{{ErrorType: "y", MaxAttempts: 2}}, Jitter: yardv1.Jitter_JITTER_FULL,
			MaxDeliveries: 3, OnLost: yardv1.OnLost_ON_LOST_DEAD, OnTimeout: yardv1.OnTimeout_ON_TIMEOUT_DEAD,
		},
	} {
		req := &yardv1.SubmitRequest{Tasks: []*yardv1.NewTask{{Type: "a", Retry: policy}}}
		data, err := codec.Marshal(codec.JSON, req)
		if err != nil || string(data) != text {
			t.Errorf("written as %s, %v", data, err)
		}
		back := new(yardv1.SubmitRequest)
		if err := codec.UnmarshalRequest(codec.JSON, []byte(text), back); err != nil || !proto.Equal(back, req) {
			t.Errorf("%s is read as %v, %v", text, back, err)
		}
	}
	for text, path := range map[string]string{
		`{"tasks":[{"retry":{"jitter":"FULL"}}]}`:               "/tasks/0/retry/jitter",
		`{"tasks":[{"retry":{"on_lost":"never"}}]}`:             "/tasks/0/retry/on_lost",
		`{"tasks":[{"retry":{"on_timeout":2}}]}`:                "/tasks/0/retry/on_timeout",
		`{"tasks":[{"retry":{"by_error":[{"error":"x"}]}}]}`:    "/tasks/0/retry/by_error/0/error",
		`{"tasks":[{"retry":{"non_retryable":"card_stolen"}}]}`: "/tasks/0/retry/non_retryable",
	} {
		err := codec.UnmarshalRequest(codec.JSON, []byte(text), new(yardv1.SubmitRequest))
		if f := fault.From(err); f == nil || f.Code != fault.InvalidArgument || f.Path != path {
			t.Errorf("%s: %v", text, err)
		}
	}
}
