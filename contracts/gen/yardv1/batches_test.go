package yardv1_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// States of batches keep their numbers, which are on the wire, and their names, which are in JSON.
func TestStatesOfBatchesKeepTheirNumbersAndNames(t *testing.T) {
	states := map[yardv1.BatchState]struct {
		name string
		over bool
	}{0: {"unspecified", false}, 1: {"open", false}, 2: {"closed", false}, 3: {"completed", true}, 4: {"expired", true}}
	for n := range yardv1.BatchState_name {
		s := yardv1.BatchState(n)
		want, known := states[s]
		if !known {
			t.Fatalf("%v is not in this test: is it a last state?", s)
		}
		if s.Name() != want.name || s.Over() != want.over {
			t.Errorf("%d is %q, and a last state: %v", n, s.Name(), s.Over())
		}
		text, err := s.MarshalText()
		if err != nil || string(text) != want.name {
			t.Errorf("%v is written as %q: %v", s, text, err)
		}
		back := yardv1.BatchState(99)
		switch err := back.UnmarshalText(text); {
		case n == 0 && (err == nil || back != 99):
			t.Errorf("no state is read as %v: %v", back, err)
		case n != 0 && (err != nil || back != s):
			t.Errorf("%q is read as %v: %v", text, back, err)
		}
	}
	if len(yardv1.BatchState_name) != len(states) {
		t.Errorf("there are %d states", len(yardv1.BatchState_name))
	}
}

// A state has one spelling. What is refused leaves what was there.
func TestUnknownStatesOfBatchesAreRefused(t *testing.T) {
	for _, text := range []string{"", "OPEN", "Open", "open ", " open", "unspecified", "BATCH_STATE_OPEN", "batch_state_open", "1", "running", "dead"} {
		s := yardv1.BatchState_BATCH_STATE_CLOSED
		if err := s.UnmarshalText([]byte(text)); err == nil || s != yardv1.BatchState_BATCH_STATE_CLOSED {
			t.Errorf("%q is read as %v: %v", text, s, err)
		}
	}
	// A state of a newer engine has a name here too, so that what it tells of can be shown, and it is not taken for a last one.
	if newer := yardv1.BatchState(99); newer.Name() != "99" || newer.Over() {
		t.Errorf("state 99 is %q, and a last one: %v", newer.Name(), newer.Over())
	}
}

func TestBatchesAsJSON(t *testing.T) {
	for want, m := range map[string]any{
		`{"batches":[]}`:                       &yardv1.ListBatchesResponse{},
		`{"batches":[null],"next_cursor":"c"}`: &yardv1.ListBatchesResponse{Batches: []*yardv1.Batch{nil}, NextCursor: "c"},
		// Counts and times are there although they are 0, texts are not.
		`{"batch_id":"a","state":"completed","tasks":3,"active":0,"completed":2,"dead":1,"cancelled":0,"expired":0,"created_at_ms":1,"closed_at_ms":0,` +
			`"ended_at_ms":2,"expires_at_ms":0,"keep_ms":60000,"cancel_requested":true,"callback_task_id":"t"}`: &yardv1.Batch{
			BatchId: "a", State: yardv1.BatchState_BATCH_STATE_COMPLETED, Tasks: 3, Completed: 2, Dead: 1, CreatedAtMs: 1, EndedAtMs: 2, KeepMs: 60_000,
			CancelRequested: true, CallbackTaskId: "t",
		},
	} {
		if got, err := json.Marshal(m); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	var req yardv1.ListBatchesRequest
	if err := json.Unmarshal([]byte(`{"states":["closed","expired"],"limit":7}`), &req); err != nil || req.Limit != 7 ||
		!slices.Equal(req.States, []yardv1.BatchState{yardv1.BatchState_BATCH_STATE_CLOSED, yardv1.BatchState_BATCH_STATE_EXPIRED}) {
		t.Errorf("read %v: %v", &req, err)
	}
	if err := json.Unmarshal([]byte(`{"states":["over"]}`), new(yardv1.ListBatchesRequest)); err == nil {
		t.Error("a list of batches in an unknown state was taken")
	}
}

// A field that this version does not know is found in each request about batches, and in the callback, the path says where.
func TestUnknownFieldsOfBatchesAreFound(t *testing.T) {
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 1)
	const callback, payload, retry = 2, 3, 7
	checktest.Equal(t, "a callback is field", numberOf(t, &yardv1.CreateBatchRequest{Callback: &yardv1.NewTask{}}), callback)
	checktest.Equal(t, "a payload is field", numberOf(t, &yardv1.NewTask{Payload: &yardv1.Payload{Data: []byte("1")}}), payload)
	checktest.Equal(t, "a policy is field", numberOf(t, &yardv1.NewTask{Retry: &yardv1.RetryPolicy{MaxAttempts: 1}}), retry)
	for name, c := range map[string]struct {
		make func() request
		deep map[string][]byte
	}{
		"create": {func() request { return new(yardv1.CreateBatchRequest) }, map[string][]byte{
			"/callback/#999":         inside(callback, unknown),
			"/callback/payload/#999": inside(callback, inside(payload, unknown)),
			"/callback/retry/#999":   inside(callback, inside(retry, unknown)),
			"/#999":                  append(inside(callback, nil), unknown...),
		}},
		"get":    {func() request { return new(yardv1.GetBatchRequest) }, nil},
		"list":   {func() request { return new(yardv1.ListBatchesRequest) }, nil},
		"close":  {func() request { return new(yardv1.CloseBatchRequest) }, nil},
		"wait":   {func() request { return new(yardv1.WaitBatchRequest) }, nil},
		"cancel": {func() request { return new(yardv1.CancelBatchRequest) }, nil},
	} {
		for _, known := range [][]byte{nil, inside(1, nil)} {
			m := c.make()
			if err := m.UnmarshalVT(known); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if path, found := m.UnknownField(); found {
				t.Errorf("%s: a request of %x has %s", name, known, path)
			}
			m = c.make()
			if err := m.UnmarshalVT(append(slices.Clone(known), unknown...)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if path, found := m.UnknownField(); !found || path != "/#999" {
				t.Errorf("%s: got %q", name, path)
			}
		}
		for want, data := range c.deep {
			m := c.make()
			if err := m.UnmarshalVT(data); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if path, found := m.UnknownField(); !found || path != want {
				t.Errorf("%s: got %q, want %q", name, path, want)
			}
		}
	}
}

// numberOf is the number of the only field that m has.
func numberOf(t *testing.T, m interface{ MarshalVT() ([]byte, error) }) protowire.Number {
	t.Helper()
	data, err := m.MarshalVT()
	checktest.NoError(t, err)
	n, _, _ := protowire.ConsumeTag(data)
	return n
}

// What becomes of an order key has one spelling; nothing is the default, and what is unknown is refused.
func TestPoliciesOfOrderKeysHaveOneSpelling(t *testing.T) {
	for policy, want := range map[yardv1.OrderPolicy]string{
		yardv1.OrderPolicy_ORDER_POLICY_SKIP: "skip", yardv1.OrderPolicy_ORDER_POLICY_BLOCK: "block",
	} {
		text, err := policy.MarshalText()
		var back yardv1.OrderPolicy
		if failed := back.UnmarshalText(text); err != nil || string(text) != want || failed != nil || back != policy {
			t.Errorf("%v is written as %q and read as %v: %v", policy, text, back, failed)
		}
	}
	nothing := yardv1.OrderPolicy_ORDER_POLICY_BLOCK
	if err := nothing.UnmarshalText(nil); err != nil || nothing != 0 {
		t.Errorf("nothing is read as %v: %v", nothing, err)
	}
	for _, text := range []string{"BLOCK", "Block", "block ", "ORDER_POLICY_BLOCK", "park", "1"} {
		if err := new(yardv1.OrderPolicy).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	var task yardv1.NewTask
	if err := json.Unmarshal([]byte(`{"order_key":"a","order_policy":"block","batch_id":"b"}`), &task); err != nil ||
		task.OrderPolicy != yardv1.OrderPolicy_ORDER_POLICY_BLOCK || task.BatchId != "b" {
		t.Errorf("read %v: %v", &task, err)
	}
}
