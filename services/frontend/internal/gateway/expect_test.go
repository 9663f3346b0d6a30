package gateway

import (
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
)

// accepted returns the ids of an accepted submit.
func accepted(t *testing.T, o reply) []string {
	t.Helper()
	if o.err != nil {
		t.Fatalf("refused: %v", o.err)
	}
	return o.resp.(*yardv1.SubmitResponse).TaskIDs()
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	_ = faultOf(t, err, code)
}

// faultOf expects an error with a code, and returns all of it.
func faultOf(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return fault.From(err)
}

// wantAt expects an error that names a field.
func wantAt(t *testing.T, err error, code fault.Code, path string) {
	t.Helper()
	testkit.Equal(t, "the field of "+string(code), faultOf(t, err, code).Path, path)
}

// wantLater expects an error that says when to try again.
func wantLater(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if faultOf(t, err, code).RetryAfter == 0 {
		t.Errorf("no retry-after: %v", err)
	}
}

// inBubble is a test in a time of its own.
func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// sent is what a request will be answered with.
func sent[Req any](t *testing.T, r *rig, do func(call.Call, Req, call.Answer), req Req) <-chan reply {
	t.Helper()
	answer, got := r.answers(t)
	do(r.call(), req, answer)
	return got
}

func sends[Req any](r *rig, do func(call.Call, Req, call.Answer), req Req) func(call.Answer) {
	return func(a call.Answer) { do(r.call(), req, a) }
}

// answerOf is the answer to a request that must succeed.
func answerOf[Resp codec.Message, Req any](t *testing.T, r *rig, domain string, json bool, do func(call.Call, Req, call.Answer), req Req) Resp {
	t.Helper()
	resp, err := asked(r, domain, json, do, req)
	testkit.NoError(t, err)
	return resp.(Resp)
}

func allAccepted(t *testing.T, all []<-chan reply) {
	t.Helper()
	for _, one := range all {
		accepted(t, <-one)
	}
}
