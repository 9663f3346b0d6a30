package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// publicFiles are the descriptors compiled into the generated code. They hold no
// comments, which is why the documents are made from protoc's.
func publicFiles() []protoreflect.FileDescriptor {
	return []protoreflect.FileDescriptor{yardv1.File_yard_v1_tasks_proto, yardv1.File_yard_v1_admin_proto, yardv1.File_yard_v1_schedules_proto, yardv1.File_yard_v1_timers_proto, yardv1.File_yard_v1_explain_proto, yardv1.File_yard_v1_audit_proto}
}

// TestReferenceIsFresh compares the committed document with the generated code,
// so that a field without its line is found where there is no protoc.
func TestReferenceIsFresh(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Description string `json:"description"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	raw, err := os.ReadFile("../../asyncapi.json")
	checktest.NoError(t, err)
	checktest.NoError(t, json.Unmarshal(raw, &doc))
	for _, file := range publicFiles() {
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			name := string(m.Name())
			schema, ok := doc.Components.Schemas[name]
			if !ok {
				t.Errorf("%s is not in asyncapi.json: run contracts/proto/generate.sh", name)
			}
			if name == payloadMessage {
				continue
			}
			if len(schema.Properties) != m.Fields().Len() {
				t.Errorf("%s has %d fields in asyncapi.json, %d in the code", name, len(schema.Properties), m.Fields().Len())
			}
			for j := range m.Fields().Len() {
				if field := string(m.Fields().Get(j).Name()); schema.Properties[field].Description == "" {
					t.Errorf("%s.%s has no comment in the .proto file", name, field)
				}
			}
		}
	}
}

// TestExamples decodes every example as the server and a client would.
func TestExamples(t *testing.T) {
	for _, e := range verbs(t) {
		request, response := newMessage(t, e.Request), newMessage(t, e.Response)
		if err := codec.UnmarshalRequest(codec.JSON, []byte(e.In), request); err != nil {
			t.Errorf("%s: the request's example: %v", e.Verb, err)
		}
		// Strictly too: an example may not show what is not there.
		if err := codec.UnmarshalRequest(codec.JSON, []byte(e.Out), response); err != nil {
			t.Errorf("%s: the response's example: %v", e.Verb, err)
		}
		if e.Does == "" || !strings.HasSuffix(e.Does, ".") {
			t.Errorf("%s: %q is no sentence", e.Verb, e.Does)
		}
	}
	checktest.NoError(t, codec.UnmarshalRequest(codec.JSON, []byte(eventsExample), newMessage(t, "DomainEvents")))
	id, err := ids.ParseTaskID(exampleTask)
	checktest.Check(t, err)
	checktest.Check(t, checktest.Err(ids.NewTokens([ids.TokenSecretBytes]byte{}).Read(id, exampleToken)))
	if e := fault.Decode(string(fault.InvalidArgument), "", []byte(errorExample)); e.Path == "" {
		t.Errorf("the example of an error is read as %v", e)
	}
}

// verbs are the endpoints.
func verbs(t *testing.T) []endpoint {
	t.Helper()
	all, _, err := endpoints()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d endpoints, %v", len(all), err)
	}
	return all
}

// exampleTask and exampleToken are of the examples.
const (
	exampleTask  = "06dabzyw00004emhrks7qr2x30"
	exampleToken = "0000000006e06000000gqmy6pat8w74nt6ta3a3jbv8wg"
)

func newMessage(t *testing.T, name string) codec.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(publicPackage + "." + name))
	checktest.NoError(t, err)
	m, ok := kind.New().Interface().(codec.Message)
	if !ok {
		t.Fatalf("%s is not a message of the API", name)
	}
	return m
}

// TestEveryRequestHasAnEndpoint holds the list of endpoints against the messages.
func TestEveryRequestHasAnEndpoint(t *testing.T) {
	has := map[string]bool{}
	for _, e := range verbs(t) {
		has[e.Request] = true
	}
	for _, file := range publicFiles() {
		for i := range file.Messages().Len() {
			if name := string(file.Messages().Get(i).Name()); strings.HasSuffix(name, "Request") && !has[name] {
				t.Errorf("%s belongs to no endpoint", name)
			}
		}
	}
}

// TestRules shows what is read out of comments.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		comment, kind string
		list          bool
		want          rules
	}{
		{"Wait for it, ms, 0..60000. Default 30000.", "integer", false, rules{Min: "0", Max: "60000", Default: "30000"}},
		{"1..1000 tasks. Required.", "NewTask", true, rules{Required: true, Min: "1", Max: "1000"}},
		{"Only these types; at most 100. Default: all.", "string", true, rules{Min: "0", Max: "100"}},
		{"What kind of work it is; required. [A-Za-z0-9_.-]{1,64}.", "string", false, rules{Required: true, Pattern: "^[A-Za-z0-9_.-]{1,64}$"}},
		{"For people; at most 1024 bytes.", "string", false, rules{}},
	} {
		if got := rulesOf(c.comment, c.kind, c.list); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.comment, got, c.want)
		}
	}
}

// TestCodesAreComplete: the page explains every code there is.
func TestCodesAreComplete(t *testing.T) {
	codes, err := readCodes("../../fault/codes.go")
	checktest.NoError(t, err)
	source, err := os.ReadFile("../../fault/codes.go")
	checktest.NoError(t, err)
	if want := len(regexp.MustCompile(`Code = "`).FindAll(source, -1)); len(codes) != want {
		t.Errorf("%d codes have a comment, there are %d", len(codes), want)
	}
	page, err := os.ReadFile("../../API.md")
	checktest.NoError(t, err)
	for _, c := range codes {
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), "- `"+string(c.Code)+"`: "+c.Comment+" Try again:") {
			t.Errorf("API.md does not say what %s means: run contracts/proto/generate.sh", c.Code)
		}
	}
}
