package codec

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

func TestJSONFormOfASubmit(t *testing.T) {
	body := `{"tasklist":"mail","tasks":[{"type":"email.send","payload":{"to":"a@b.c","n":[1,2]},"priority":1,"delay_ms":1500},
	{"type":"thumb","payload":{"$binary":"AAEC"}},{"type":"x","payload":"text"},{"type":"x","payload":{"$binary":"AAEC","more":1}}]}`
	var r yardv1.SubmitRequest
	checktest.NoError(t, UnmarshalRequest(JSON, []byte(body), &r))
	checktest.Equal(t, "payload", string(r.Tasks[0].Payload.Data), `{"to":"a@b.c","n":[1,2]}`)
	if p := r.Tasks[1].Payload; p.Encoding != yardv1.Encoding_ENCODING_BINARY || string(p.Data) != "\x00\x01\x02" {
		t.Errorf("binary payload %v", p)
	}
	if p := r.Tasks[3].Payload; p.Encoding != yardv1.Encoding_ENCODING_JSON {
		t.Errorf("an object with other members is plain JSON: %v", p)
	}
	if r.Tasks[0].Priority != 1 || r.Tasks[0].DelayMs != 1500 {
		t.Errorf("task %v", r.Tasks[0])
	}
}

func TestJSONFormOfAnswers(t *testing.T) {
	for _, c := range []struct {
		m    Message
		want string
	}{
		{&yardv1.PollResponse{}, `{"tasks":[]}`},
		{&yardv1.ListDomainsRequest{}, `{}`},
		{&yardv1.ListTypesResponse{}, `{"types":[]}`},
		{&yardv1.ListDomainsResponse{NextCursor: "a"}, `{"domains":[],"next_cursor":"a"}`},
		{
			&yardv1.GetResponse{Task: &yardv1.Task{
				TaskId: "x", State: yardv1.TaskState_TASK_STATE_RUNNING, Payload: &yardv1.Payload{Data: []byte(`{"a": 1}`)},
				Events: []*yardv1.TaskEvent{{Kind: yardv1.TaskEventKind_TASK_EVENT_KIND_HANDED_BACK, AtMs: 5}},
			}},
			`{"task":{"task_id":"x","state":"running","payload":{"a":1},"events":[{"kind":"handed_back","at_ms":5}]}}`,
		},
	} {
		b, err := Marshal(JSON, c.m)
		if err != nil || string(b) != c.want {
			t.Errorf("got  %s %v\nwant %s", b, err, c.want)
		}
		back := c.m
		if err := Unmarshal(JSON, b, back); err != nil {
			t.Errorf("read back %s: %v", b, err)
		}
	}
}

func TestARequestOfNothing(t *testing.T) {
	for body, good := range map[string]bool{``: true, `{}`: true, `{"x":1}`: false, `[]`: false} {
		if err := UnmarshalRequest(JSON, []byte(body), &yardv1.ListDomainsRequest{}); (err == nil) != good {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// As a value of any field, null is none.
func TestNullIsNoPayloadAndNoResult(t *testing.T) {
	var submit yardv1.SubmitRequest
	var complete yardv1.CompleteRequest
	for body, m := range map[string]Message{`{"tasks":[{"type":"x","payload":null}]}`: &submit, `{"tasks":[{"task_id":"a","result":null}]}`: &complete} {
		if err := UnmarshalRequest(JSON, []byte(body), m); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	if p, r := submit.Tasks[0].Payload, complete.Tasks[0].Result; p != nil || r != nil {
		t.Errorf("payload %v, result %v", p, r)
	}
}

func TestBadRequestsNameTheField(t *testing.T) {
	unknown := protowire.AppendTag(nil, 99, protowire.VarintType)
	unknown = protowire.AppendVarint(unknown, 1)
	nested, err := (&yardv1.SubmitRequest{Tasks: []*yardv1.NewTask{{}}}).MarshalVT()
	checktest.NoError(t, err)
	nested = append(nested[:1], append([]byte{byte(len(unknown))}, unknown...)...)
	for name, c := range map[string]struct {
		ct         ContentType
		body, path string
	}{
		"unknown field":          {JSON, `{"tasks":[{"type":"a","dealy_ms":5}]}`, "/tasks/0/dealy_ms"},
		"wrong type":             {JSON, `{"tasks":[{"type":"a","delay_ms":"5"}]}`, "/tasks/0/delay_ms"},
		"bad JSON":               {JSON, `{"tasks":[`, "/tasks"},
		"case matters":           {JSON, `{"Tasks":[]}`, "/Tasks"},
		"bad base64":             {JSON, `{"tasks":[{"payload":{"$binary":"?"}}]}`, "/tasks/0/payload"},
		"protobuf unknown":       {Protobuf, string(unknown), "/#99"},
		"protobuf unknown below": {Protobuf, string(nested), "/tasks/0/#99"},
		"bad protobuf":           {Protobuf, "\x0a\xff", ""},
	} {
		err := fault.From(UnmarshalRequest(c.ct, []byte(c.body), &yardv1.SubmitRequest{}))
		if err == nil || err.Code != fault.InvalidArgument || !strings.HasPrefix(err.Path, c.path) || err.Message == "" {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

// R56: a whole number may be written as other languages write it, and nothing else may pass for one.
func TestR56_WholeNumbersInEveryForm(t *testing.T) {
	for text, want := range map[string]int64{"100": 100, "1e2": 100, "100.0": 100, "-0.0": 0, "9007199254740993": 9007199254740993} {
		var r yardv1.SubmitRequest
		if err := UnmarshalRequest(JSON, []byte(`{"wait_ms":`+text+`}`), &r); err != nil || r.WaitMs != want {
			t.Errorf("%s is %d: %v", text, r.WaitMs, err)
		}
	}
	for _, body := range []string{
		`{"wait_ms":1.5}`, `{"wait_ms":1e30}`, `{"wait_ms":"100"}`, `{"wait_ms":9223372036854775808}`, `{"tasks":[{"priority":4294967297}]}`, `{"tasks":[{"priority":true}]}`,
	} {
		e := fault.From(UnmarshalRequest(JSON, []byte(body), &yardv1.SubmitRequest{}))
		if e == nil || e.Code != fault.InvalidArgument || e.Path != "/wait_ms" && e.Path != "/tasks/0/priority" {
			t.Errorf("%s: %v", body, e)
		}
	}
}

// R56: a payload comes back as it was written, but for white space; a state has one name; a path can be read.
func TestR56_FormsAreKept(t *testing.T) {
	const payload = `{"a" : 1.0,  "b":"\u00e4\/", "c":1e2}`
	var r yardv1.SubmitRequest
	if err := UnmarshalRequest(JSON, []byte(`{"tasks":[{"payload":`+payload+`}]}`), &r); err != nil || string(r.Tasks[0].Payload.Data) != payload {
		t.Errorf("%v %v", &r, err)
	}
	got, err := Marshal(JSON, &yardv1.PolledTask{Payload: r.Tasks[0].Payload})
	if want := `{"payload":{"a":1.0,"b":"\u00e4\/","c":1e2}}`; err != nil || string(got) != want {
		t.Errorf("got %s %v", got, err)
	}
	if err := UnmarshalRequest(JSON, []byte(`{"states":["RUNNING"]}`), &yardv1.ListRequest{}); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("a state in upper case: %v", err)
	}
	deep := `{"tasks":[{"payload":` + strings.Repeat(`{"a":`, 5000) + `x`
	if e := fault.From(UnmarshalRequest(JSON, []byte(deep), &yardv1.SubmitRequest{})); e == nil || len(e.Path) > 300 || !strings.HasPrefix(e.Path, "/tasks/0/payload/a") {
		t.Errorf("%v", e)
	}
}

func TestContentTypes(t *testing.T) {
	for s, want := range map[string]ContentType{
		"": JSON, "application/json": JSON, "application/json; charset=utf-8": JSON,
		"application/protobuf": Protobuf, "application/x-protobuf": Protobuf,
	} {
		if got, err := ParseContentType(s); err != nil || got != want {
			t.Errorf("%q: %q %v", s, got, err)
		}
	}
	if _, err := ParseContentType("text/xml"); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("text/xml: %v", err)
	}
}

// A payload that is accepted in protobuf can be answered in JSON, inside the answer's own levels.
func TestAJSONValueFitsIntoAnAnswer(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	for n, ok := range map[int]bool{1: true, depthMax: true, depthMax + 1: false, 10_000: false, 10_001: false} {
		if ValidJSON(nested(n)) != ok {
			t.Errorf("%d levels: %v", n, !ok)
		}
	}
	if wide := []byte("[" + strings.Repeat("[],", 3*depthMax) + "[]]"); !ValidJSON(wide) {
		t.Error("a wide value counts as a deep one")
	}
	deepest := &yardv1.Payload{Data: nested(depthMax)}
	for _, m := range []Message{
		&yardv1.GetResponse{Task: &yardv1.Task{Payload: deepest, Result: deepest, Progress: deepest}},
		&yardv1.PollResponse{Tasks: []*yardv1.PolledTask{{Payload: deepest}}},
	} {
		if _, err := Marshal(JSON, m); err != nil {
			t.Errorf("%T: %v", m, err)
		}
	}
}
