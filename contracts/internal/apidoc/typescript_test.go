package main

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// TestTypesAreFresh compares the committed types with the generated code, as
// TestReferenceIsFresh does.
func TestTypesAreFresh(t *testing.T) {
	raw, err := os.ReadFile("../../node/api.d.ts")
	checktest.NoError(t, err)
	messages := map[string]map[string]bool{} // message → field → it is always there
	for _, m := range regexp.MustCompile(`(?ms)^export interface (\w+) \{\n(.*?)^\}`).FindAllStringSubmatch(string(raw), -1) {
		messages[m[1]] = map[string]bool{}
		for _, f := range regexp.MustCompile(`(?m)^  (\w+)(\??): `).FindAllStringSubmatch(m[2], -1) {
			messages[m[1]][f[1]] = f[2] == ""
		}
	}
	_, always, err := endpoints()
	checktest.NoError(t, err)
	for _, file := range publicFiles() {
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			name := string(m.Name())
			if name == payloadMessage {
				continue
			}
			if len(messages[name]) != m.Fields().Len() {
				t.Errorf("%s has %d fields in api.d.ts, %d in the code: run contracts/proto/generate.sh", name, len(messages[name]), m.Fields().Len())
			}
			for j := range m.Fields().Len() {
				field := string(m.Fields().Get(j).Name())
				if _, ok := messages[name][field]; !ok {
					t.Errorf("%s.%s is not in api.d.ts", name, field)
				}
			}
			for _, field := range always[name] {
				if !messages[name][field] {
					t.Errorf("%s.%s is not one that is always there in api.d.ts", name, field)
				}
			}
		}
	}
}

// TestPresentFieldsAreInExamples: no example of an answer lacks what the types say is always there.
func TestPresentFieldsAreInExamples(t *testing.T) {
	_, always, err := endpoints()
	checktest.NoError(t, err)
	for _, e := range verbs(t) {
		var answer map[string]any
		checktest.NoError(t, json.Unmarshal([]byte(e.Out), &answer))
		answered, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(publicPackage + "." + e.Response))
		checktest.NoError(t, err)
		checkPresent(t, e.Verb, always, answered.Descriptor(), answer)
	}
}

func checkPresent(t *testing.T, where string, always map[string][]string, m protoreflect.MessageDescriptor, value map[string]any) {
	t.Helper()
	for _, field := range always[string(m.Name())] {
		if _, ok := value[field]; !ok {
			t.Errorf("%s: %s lacks %s", where, m.Name(), field)
		}
	}
	for name, v := range value {
		f := m.Fields().ByName(protoreflect.Name(name))
		if f == nil || f.Message() == nil || f.Message().Name() == payloadMessage {
			continue
		}
		values, ok := v.([]any)
		if !ok {
			values = []any{v}
		}
		for _, v := range values {
			checkPresent(t, where+"."+name, always, f.Message(), v.(map[string]any))
		}
	}
}
