package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// publicPackage is the proto package of the public API.
const publicPackage = "yard.v1"

// api is what the documents are made of.
type api struct {
	endpoints []endpoint
	// messages and enums of the public API, by short name.
	messages map[string]*message
	// shared are the messages that are no endpoint's own, in the order of the files.
	shared []*message
	enums  map[string]*enum
	codes  []code
}

type message struct {
	Name    string
	Comment string
	Fields  []field
}

// RequiredFields are the names of those that a request must have.
func (m *message) RequiredFields() (names []string) {
	for _, f := range m.Fields {
		if f.Rules.Required {
			names = append(names, f.Name)
		}
	}
	return names
}

type field struct {
	Name    string
	Comment string
	// Kind is the JSON type: string, integer, number, boolean, or the name of a
	// message or an enum.
	Kind     string
	Repeated bool
	// Always: no answer is without it.
	Always bool
	Rules  rules
}

// Number: the rules are about its value.
func (f field) Number() bool { return f.Kind == "integer" || f.Kind == "number" }

// rules are what a comment says in a form that a program can check.
type rules struct {
	Required bool
	Min, Max string // of a number, or of the length of a list
	Pattern  string
	Default  string
}

type enum struct {
	Name   string
	Values []enumValue
}

type enumValue struct{ Name, Comment string }

// Names are those of the values in JSON.
func (e *enum) Names() (names []string) {
	for _, v := range e.Values {
		names = append(names, v.Name)
	}
	return names
}

// code is a fault code with its comment.
type code struct {
	fault.Code
	Comment string
}

func readAPI(set []byte) (*api, error) {
	var raw descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(set, &raw); err != nil {
		return nil, fmt.Errorf("read the descriptors: %w", err)
	}
	files, err := protodesc.NewFiles(&raw)
	if err != nil {
		return nil, fmt.Errorf("read the descriptors: %w", err)
	}
	verbs, always, err := endpoints()
	if err != nil {
		return nil, err
	}
	a := &api{endpoints: verbs, messages: map[string]*message{}, enums: map[string]*enum{}}
	var names []string
	for _, f := range raw.File {
		if f.GetPackage() != publicPackage {
			continue
		}
		d, err := files.FindFileByPath(f.GetName())
		if err != nil {
			return nil, err
		}
		names = append(names, a.readFile(d, always)...)
	}
	own := map[string]bool{}
	for _, e := range a.endpoints {
		if a.messages[e.Request] == nil || a.messages[e.Response] == nil {
			return nil, fmt.Errorf("%s: there is no message %s or %s", e.Verb, e.Request, e.Response)
		}
		own[e.Request], own[e.Response] = true, true
	}
	for _, name := range names {
		if own[name] {
			continue
		}
		if strings.HasSuffix(name, "Request") {
			return nil, fmt.Errorf("%s belongs to no endpoint", name)
		}
		a.shared = append(a.shared, a.messages[name])
	}
	return a, nil
}

// readFile takes the messages and enums of a file and returns the former's names.
func (a *api) readFile(d protoreflect.FileDescriptor, always map[string][]string) []string {
	var names []string
	comment := func(of protoreflect.Descriptor) string {
		return tidyComment(d.SourceLocations().ByDescriptor(of).LeadingComments)
	}
	for i := range d.Enums().Len() {
		e := d.Enums().Get(i)
		read := &enum{Name: string(e.Name())}
		prefix := screaming(read.Name) + "_"
		for j := range e.Values().Len() {
			v := e.Values().Get(j)
			if name := strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix)); name != "unspecified" {
				read.Values = append(read.Values, enumValue{name, comment(v)})
			}
		}
		a.enums[read.Name] = read
	}
	for i := range d.Messages().Len() {
		m := d.Messages().Get(i)
		read := &message{Name: string(m.Name()), Comment: comment(m)}
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			one := field{Name: string(f.Name()), Comment: comment(f), Kind: kindOf(f), Repeated: f.IsList()}
			one.Rules = rulesOf(one.Comment, one.Kind, f.IsList() || f.IsMap())
			one.Always = slices.Contains(always[read.Name], one.Name)
			read.Fields = append(read.Fields, one)
		}
		a.messages[read.Name] = read
		names = append(names, read.Name)
	}
	return names
}

// tidyComment puts a comment on one line.
func tidyComment(s string) string { return strings.Join(strings.Fields(s), " ") }

// screaming is the enum's name as its values carry it: TASK_STATE.
func screaming(name string) string {
	return strings.ToUpper(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_$2"))
}

// mapKind is a map of strings to strings, the only one that the API has.
const mapKind = "map of strings"

func kindOf(f protoreflect.FieldDescriptor) string {
	if f.IsMap() {
		return mapKind
	}
	switch f.Kind() {
	case protoreflect.MessageKind:
		return string(f.Message().Name())
	case protoreflect.EnumKind:
		return string(f.Enum().Name())
	case protoreflect.StringKind:
		return "string"
	case protoreflect.BoolKind:
		return "boolean"
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return "number"
	case protoreflect.BytesKind:
		return "bytes"
	}
	return "integer"
}

var (
	rangeWords   = regexp.MustCompile(`(\d+)\.\.(\d+)`)
	atMostWords  = regexp.MustCompile(`at most (\d+)\b`)
	patternWords = regexp.MustCompile(`(\[[A-Za-z0-9_.-]+\]\{\d+,\d+\})`)
	defaultWords = regexp.MustCompile(`Default (-?\d+(?:\.\d+)?)\b`)
	required     = regexp.MustCompile(`(?i)\brequired\b`)
)

// rulesOf reads what a comment says of the field's range. `0..60000`, `at most
// 100`, `[A-Za-z0-9_-]{1,64}`, `Default 3` and `Required` are the forms it knows.
func rulesOf(comment, kind string, list bool) rules {
	r := rules{Required: required.MatchString(comment)}
	number := kind == "integer" || kind == "number"
	if number || list {
		if m := rangeWords.FindStringSubmatch(comment); m != nil {
			r.Min, r.Max = m[1], m[2]
		} else if m := atMostWords.FindStringSubmatch(comment); m != nil && list {
			r.Min, r.Max = "0", m[1]
		}
	}
	if m := patternWords.FindStringSubmatch(comment); m != nil && kind == "string" {
		r.Pattern = "^" + m[1] + "$"
	}
	if m := defaultWords.FindStringSubmatch(comment); m != nil && number {
		r.Default = m[1]
	}
	return r
}

// readCodes takes the fault codes and their comments from the Go source.
func readCodes(path string) ([]code, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var codes []code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || spec.Doc == nil {
			return true
		}
		if value, err := strconv.Unquote(lit.Value); err == nil && fault.Code(value).Known() {
			_, text, _ := strings.Cut(tidyComment(spec.Doc.Text()), ": ")
			codes = append(codes, code{fault.Code(value), strings.ToUpper(text[:1]) + text[1:]})
		}
		return true
	})
	if len(codes) == 0 {
		return nil, fmt.Errorf("%s holds no codes", path)
	}
	return codes, nil
}

// codesOf are the codes an endpoint may answer with, in the order of the list.
func (a *api) codesOf(e endpoint) string {
	var all []string
	for _, c := range a.codes {
		if slices.Contains(e.codes, c.Code) || slices.Contains(commonCodes(), c.Code) {
			all = append(all, string(c.Code))
		}
	}
	return strings.Join(all, ", ")
}
