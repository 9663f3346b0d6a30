package compat

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

const golden = "testdata/api.txt"

// TestNothingThatClientsDependOnHasChanged. UPDATE_API=add writes what is new; UPDATE_API=break also removes what is
// gone, for before the first release.
func TestNothingThatClientsDependOnHasChanged(t *testing.T) {
	have := surface(t)
	data, err := os.ReadFile(golden)
	if err != nil && os.Getenv("UPDATE_API") == "" {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if line != "" {
			want[line] = true
		}
	}
	broken, added := missing(want, have), missing(have, want)
	switch os.Getenv("UPDATE_API") {
	case "add":
		maps.Copy(want, have)
	case "break":
		want, broken = have, nil
	default:
		for _, line := range added {
			t.Errorf("new: %s (run this test with UPDATE_API=add)", line)
		}
	}
	for _, line := range broken {
		t.Errorf("clients depend on this, and it is gone or has changed: %s", line)
	}
	if os.Getenv("UPDATE_API") != "" && len(broken) == 0 {
		checktest.NoError(t, os.WriteFile(golden, []byte(strings.Join(slices.Sorted(maps.Keys(want)), "\n")+"\n"), 0o644))
	}
}

// A check that cannot fail would be none.
func TestAChangeIsNoticed(t *testing.T) {
	have := surface(t)
	for _, line := range []string{
		"field yard.v1.NewTask 1 type string", "enum yard.v1.TaskState 3 READY", "code UNKNOWN",
		"subject yard.v1.{domain}.tasks.submit SubmitRequest", "header Content-Type",
	} {
		if !have[line] {
			t.Errorf("the surface has no line %q", line)
		}
	}
	want := maps.Clone(have)
	want["field yard.v1.NewTask 1 kind string"] = true
	checktest.Equal(t, "a renamed field", missing(want, have), []string{"field yard.v1.NewTask 1 kind string"})
}

// missing are the lines of a that b lacks, sorted.
func missing(a, b map[string]bool) (lines []string) {
	for line := range a {
		if !b[line] {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// surface is what clients depend on, a line each.
func surface(t *testing.T) map[string]bool {
	t.Helper()
	lines := map[string]bool{}
	for _, file := range []protoreflect.FileDescriptor{yardv1.File_yard_v1_tasks_proto, yardv1.File_yard_v1_admin_proto, yardv1.File_yard_v1_schedules_proto, yardv1.File_yard_v1_timers_proto, yardv1.File_yard_v1_explain_proto, yardv1.File_yard_v1_audit_proto} {
		for i := range file.Messages().Len() {
			for j := range file.Messages().Get(i).Fields().Len() {
				f := file.Messages().Get(i).Fields().Get(j)
				lines[fmt.Sprintf("field %s %d %s %s", f.Parent().FullName(), f.Number(), f.Name(), kind(f))] = true
			}
		}
		for i := range file.Enums().Len() {
			e := file.Enums().Get(i)
			prefix := strings.TrimSuffix(string(e.Values().Get(0).Name()), "UNSPECIFIED")
			for j := range e.Values().Len() {
				v := e.Values().Get(j)
				lines[fmt.Sprintf("enum %s %d %s", e.FullName(), v.Number(), strings.TrimPrefix(string(v.Name()), prefix))] = true
			}
		}
	}
	for _, c := range fault.Codes() {
		lines["code "+string(c)] = true
	}
	for _, h := range []string{codec.HeaderContentType, fault.HeaderCode, fault.HeaderDescription} {
		lines["header "+h] = true
	}
	subjects(t, lines)
	return lines
}

func kind(f protoreflect.FieldDescriptor) string {
	text := f.Kind().String()
	switch {
	case f.IsMap():
		return "map<" + kind(f.MapKey()) + ", " + kind(f.MapValue()) + ">"
	case f.Message() != nil:
		text = string(f.Message().FullName())
	case f.Enum() != nil:
		text = string(f.Enum().FullName())
	}
	if f.IsList() {
		text = "repeated " + text
	}
	return text
}

// subjects adds those of the reference, which is compared with the running API elsewhere.
func subjects(t *testing.T, lines map[string]bool) {
	t.Helper()
	data, err := os.ReadFile("../../asyncapi.json")
	checktest.NoError(t, err)
	var doc struct {
		Channels map[string]struct {
			Address  string                     `json:"address"`
			Messages map[string]json.RawMessage `json:"messages"`
		} `json:"channels"`
	}
	checktest.NoError(t, json.Unmarshal(data, &doc))
	for id, c := range doc.Channels {
		if c.Address == "" {
			continue
		}
		for m := range c.Messages {
			lines["subject "+c.Address+" "+m] = true
		}
		for m := range doc.Channels[id+"_reply"].Messages {
			lines["answer "+c.Address+" "+m] = true
		}
	}
}
