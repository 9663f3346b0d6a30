package settings

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// field is one leaf of a config struct under its three names.
type field struct {
	path   string // in the file: window.tasks_max
	env    string // YARD_HISTORY_WINDOW__TASKS_MAX
	flag   string // window.tasks-max
	usage  string
	secret bool
	url    bool // of URLs, the passwords are secret
	bytes  bool // a size: may be written with a unit
	typ    reflect.Type
	index  []int // for reflect.Value.FieldByIndex
}

// section is one struct inside the config, the config itself included.
type section struct {
	path  string // empty for the config itself
	index []int
}

// schema is the shape of a config struct.
type schema struct {
	prefix   string // of the environment variables: YARD_HISTORY_
	fields   []field
	sections []section
}

var (
	tagForm     = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	durationTyp = reflect.TypeFor[time.Duration]()
	listTyp     = reflect.TypeFor[[]string]()
)

// newSchema reads the tags of a struct type. A mistake in them is a mistake in the
// program, so it panics.
func newSchema(name string, t reflect.Type) *schema {
	s := &schema{prefix: "YARD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_"}
	s.addStruct(t, nil, nil)
	taken := map[string]bool{flagConfig: true, flagHelp: true, flagPrint: true}
	for _, f := range s.fields {
		if taken[f.flag] {
			panic(fmt.Sprintf("settings: %v: the name %s is taken", t, f.path))
		}
		taken[f.flag] = true
	}
	return s
}

func (s *schema) addStruct(t reflect.Type, words []string, index []int) {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("settings: %v is not a struct", t))
	}
	s.sections = append(s.sections, section{strings.Join(words, "."), index})
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		tag, tagged := sf.Tag.Lookup("koanf")
		switch {
		case tag == "-" || !sf.IsExported():
		case !tagged && sf.Anonymous && sf.Type.Kind() == reflect.Struct:
			s.addStruct(sf.Type, words, at)
		case !tagForm.MatchString(tag):
			panic(fmt.Sprintf("settings: %v.%s: the koanf tag %q is not words joined by underscores", t, sf.Name, tag))
		default:
			s.addField(t, sf, append(words[:len(words):len(words)], tag), at)
		}
	}
}

func (s *schema) addField(owner reflect.Type, sf reflect.StructField, words []string, index []int) {
	if sf.Type.Kind() == reflect.Struct {
		s.addStruct(sf.Type, words, index)
		return
	}
	f := field{
		path:   strings.Join(words, "."),
		env:    s.prefix + strings.ToUpper(strings.Join(words, "__")),
		flag:   strings.ReplaceAll(strings.Join(words, "."), "_", "-"),
		usage:  sf.Tag.Get("usage"),
		secret: sf.Tag.Get("secret") == "true",
		url:    sf.Tag.Get("secret") == "url",
		bytes:  sf.Tag.Get("unit") == "bytes",
		typ:    sf.Type,
		index:  index,
	}
	number := f.typ.Kind() == reflect.Int || f.typ.Kind() == reflect.Int64
	if !number && !f.isList() && f.typ.Kind() != reflect.Bool && f.typ.Kind() != reflect.String {
		panic(fmt.Sprintf("settings: %v.%s: a %v cannot be set", owner, sf.Name, f.typ))
	}
	if f.bytes && !number {
		panic(fmt.Sprintf("settings: %v.%s: a size in bytes is a whole number", owner, sf.Name))
	}
	s.fields = append(s.fields, f)
}

// isList tells whether a value has several items.
func (f *field) isList() bool { return f.typ == listTyp }

// isSection tells whether a path names a struct of the config.
func (s *schema) isSection(path string) bool {
	return slices.ContainsFunc(s.sections, func(sec section) bool { return sec.path == path })
}

// at returns the field of a path, or nil.
func (s *schema) at(path string) *field {
	return s.find(func(f *field) bool { return f.path == path })
}

// find returns the first field that fits, or nil.
func (s *schema) find(fits func(*field) bool) *field {
	for i := range s.fields {
		if fits(&s.fields[i]) {
			return &s.fields[i]
		}
	}
	return nil
}
