package yardv1_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// A payload in JSON is what was given, byte for byte; a binary one is an object with one member.
func TestPayloadsAsJSON(t *testing.T) {
	for text, want := range map[string]*yardv1.Payload{
		`{"to":"ann"}`:             {Data: []byte(`{"to":"ann"}`)},
		`1.50`:                     {Data: []byte(`1.50`)},
		`null`:                     {Data: []byte(`null`)},
		`{"$binary":"AAEC"}`:       {Data: []byte{0, 1, 2}, Encoding: yardv1.Encoding_ENCODING_BINARY},
		`{"$binary":""}`:           {Encoding: yardv1.Encoding_ENCODING_BINARY},
		`{"$binary":"AA==","x":1}`: {Data: []byte(`{"$binary":"AA==","x":1}`)},
		`{"$binary":7}`:            {Data: []byte(`{"$binary":7}`)},
		`{"x":"$binary"}`:          {Data: []byte(`{"x":"$binary"}`)},
	} {
		var got yardv1.Payload
		if err := json.Unmarshal([]byte(text), &got); err != nil || !slices.Equal(got.Data, want.Data) || got.Encoding != max(want.Encoding, yardv1.Encoding_ENCODING_JSON) {
			t.Errorf("%s is read as %q %v: %v", text, got.Data, got.Encoding, err)
		}
		if back, err := json.Marshal(&got); err != nil || string(back) != text {
			t.Errorf("%s is written as %s: %v", text, back, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"$binary":"no base64!"}`), new(yardv1.Payload)); err == nil {
		t.Error("what is no base64 was taken")
	}
	if text, err := json.Marshal(new(yardv1.Payload)); err != nil || string(text) != "null" {
		t.Errorf("no payload is %s: %v", text, err)
	}
}

// A list is there although it is empty, and a cursor only if there is a next page.
func TestListsAreAlwaysThere(t *testing.T) {
	for want, m := range map[string]any{
		`{"tasks":[]}`: &yardv1.PollResponse{},
		`{"tasks":[],"drain":{"stop":true,"since_ms":0}}`: &yardv1.PollResponse{Drain: &yardv1.WorkerDrain{Stop: true}},
		`{"tasks":[],"next_cursor":"c"}`:                  &yardv1.ListResponse{NextCursor: "c"},
		`{"domains":[]}`:                                  &yardv1.ListDomainsResponse{},
		`{"types":[]}`:                                    &yardv1.ListTypesResponse{},
		`{"types":[null],"next_cursor":"x"}`:              &yardv1.ListTypesResponse{Types: []*yardv1.TaskType{nil}, NextCursor: "x"},
	} {
		if got, err := json.Marshal(m); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestEnumsHaveOneSpelling(t *testing.T) {
	last := map[yardv1.TaskState]bool{
		yardv1.TaskState_TASK_STATE_COMPLETED: true, yardv1.TaskState_TASK_STATE_DEAD: true, yardv1.TaskState_TASK_STATE_CANCELLED: true,
		yardv1.TaskState_TASK_STATE_EXPIRED: true,
	}
	for n := range yardv1.TaskState_name {
		s := yardv1.TaskState(n)
		if s.Finished() != last[s] {
			t.Errorf("%v is a last state: %v", s, s.Finished())
		}
		text, err := s.MarshalText()
		var back yardv1.TaskState
		if failed := back.UnmarshalText(text); err != nil || (failed == nil) != (n != 0) || n != 0 && back != s {
			t.Errorf("%v is written as %s and read as %v: %v", s, text, back, failed)
		}
	}
	for _, text := range []string{"", "RUNNING", "Running", "running ", "unspecified", "nonsense"} {
		if err := new(yardv1.TaskState).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a state", text)
		}
	}
	for n := range yardv1.TaskEventKind_name {
		k := yardv1.TaskEventKind(n)
		text, _ := k.MarshalText() // never fails
		var back yardv1.TaskEventKind
		if err := back.UnmarshalText(text); err != nil || back != k || string(text) != k.Name() {
			t.Errorf("%v is written as %s and read as %v: %v", k, text, back, err)
		}
	}
	if err := new(yardv1.TaskEventKind).UnmarshalText([]byte("nonsense")); err == nil {
		t.Error("an unknown kind of event was taken")
	}
	for n := range yardv1.SubmitOutcome_name {
		o := yardv1.SubmitOutcome(n)
		text, _ := o.MarshalText() // never fails
		back := yardv1.SubmitOutcome(99)
		if err := back.UnmarshalText(text); err != nil || back != o {
			t.Errorf("%v is written as %s and read as %v: %v", o, text, back, err)
		}
	}
	newer := yardv1.SubmitOutcome(99)
	if err := newer.UnmarshalText([]byte("of_a_newer_engine")); err != nil || newer != 0 {
		t.Errorf("an outcome of a newer engine is %v: %v", newer, err)
	}
	resp := &yardv1.SubmitResponse{Results: []*yardv1.SubmitResult{{TaskId: "a"}, {TaskId: "b"}}}
	checktest.Equal(t, "ids", resp.TaskIDs(), []string{"a", "b"})
}

type request interface {
	UnmarshalVT([]byte) error
	UnknownField() (string, bool)
}

// inside is a message with another one in its field.
func inside(field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), message)
}

// A field that this version does not know is found wherever it is, since what it asks for would not happen.
func TestUnknownFieldsAreFound(t *testing.T) {
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 1)
	for _, c := range []struct {
		name string
		make func() request
		deep map[string][]byte
	}{
		{"submit", func() request { return new(yardv1.SubmitRequest) }, nil},
		{"poll", func() request { return new(yardv1.PollRequest) }, nil},
		{"complete", func() request { return new(yardv1.CompleteRequest) }, nil},
		{"fail", func() request { return new(yardv1.FailRequest) }, nil},
		{"heartbeat", func() request { return new(yardv1.HeartbeatRequest) }, nil},
		{"get", func() request { return new(yardv1.GetRequest) }, nil},
		{"list", func() request { return new(yardv1.ListRequest) }, nil},
		{"cancel", func() request { return new(yardv1.CancelRequest) }, nil},
		{"put a domain", func() request { return new(yardv1.PutDomainRequest) }, map[string][]byte{"/domain/#999": inside(1, unknown)}},
		{"get a domain", func() request { return new(yardv1.GetDomainRequest) }, nil},
		{"list domains", func() request { return new(yardv1.ListDomainsRequest) }, nil},
		{"delete a domain", func() request { return new(yardv1.DeleteDomainRequest) }, nil},
		{"put a type", func() request { return new(yardv1.PutTypeRequest) }, map[string][]byte{"/type/#999": inside(1, unknown)}},
		{"get a type", func() request { return new(yardv1.GetTypeRequest) }, nil},
		{"list types", func() request { return new(yardv1.ListTypesRequest) }, nil},
		{"delete a type", func() request { return new(yardv1.DeleteTypeRequest) }, nil},
		{"describe", func() request { return new(yardv1.DescribeTasklistRequest) }, nil},
		{"pollers", func() request { return new(yardv1.TasklistPollersRequest) }, nil},
		{"top limits", func() request { return new(yardv1.TopLimitsRequest) }, nil},
		{"pause", func() request { return new(yardv1.PauseRequest) }, nil},
		{"resume", func() request { return new(yardv1.ResumeRequest) }, nil},
		{"get a limit", func() request { return new(yardv1.GetLimitRequest) }, nil},
		{"list limits", func() request { return new(yardv1.ListLimitsRequest) }, nil},
		{"delete a limit", func() request { return new(yardv1.DeleteLimitRequest) }, nil},
		{"put a limit", func() request { return new(yardv1.PutLimitRequest) }, map[string][]byte{"/limit/#999": inside(1, unknown)}},
	} {
		if path, found := c.make().UnknownField(); found {
			t.Errorf("%s: an empty request has %s", c.name, path)
		}
		cases := map[string][]byte{"/#999": unknown}
		for path, data := range c.deep {
			cases[path] = data
		}
		for want, data := range cases {
			m := c.make()
			if err := m.UnmarshalVT(data); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if path, found := m.UnknownField(); !found || path != want {
				t.Errorf("%s: got %q, want %q", c.name, path, want)
			}
		}
	}
}

// In the lists of a request the path says which entry has the field.
func TestUnknownFieldsOfEntriesAreNamed(t *testing.T) {
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 1)
	number := func(m interface{ MarshalVT() ([]byte, error) }) protowire.Number {
		data, err := m.MarshalVT()
		checktest.NoError(t, err)
		n, _, _ := protowire.ConsumeTag(data)
		return n
	}
	text := &yardv1.Payload{Data: []byte("1")}
	for name, c := range map[string]struct {
		into request
		list protowire.Number
		deep map[string]protowire.Number
	}{
		"submit": {new(yardv1.SubmitRequest), number(&yardv1.SubmitRequest{Tasks: []*yardv1.NewTask{{}}}), map[string]protowire.Number{
			"/payload": number(&yardv1.NewTask{Payload: text}), "/retry": number(&yardv1.NewTask{Retry: &yardv1.RetryPolicy{MaxAttempts: 1}}),
		}},
		"complete": {new(yardv1.CompleteRequest), number(&yardv1.CompleteRequest{Tasks: []*yardv1.Completion{{}}}), map[string]protowire.Number{
			"/result": number(&yardv1.Completion{Result: text}),
		}},
		"fail": {new(yardv1.FailRequest), number(&yardv1.FailRequest{Tasks: []*yardv1.Failure{{}}}), nil},
		"heartbeat": {new(yardv1.HeartbeatRequest), number(&yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{{}}}), map[string]protowire.Number{
			"/progress": number(&yardv1.Beat{Progress: text}),
		}},
	} {
		cases := map[string][]byte{"/tasks/1/#999": unknown}
		for path, field := range c.deep {
			cases["/tasks/1"+path+"/#999"] = inside(field, unknown)
		}
		for want, entry := range cases {
			c.into.(interface{ Reset() }).Reset()
			checktest.NoError(t, c.into.UnmarshalVT(append(inside(c.list, nil), inside(c.list, entry)...)))
			if path, found := c.into.UnknownField(); !found || path != want {
				t.Errorf("%s: got %q, want %q", name, path, want)
			}
		}
	}
}
