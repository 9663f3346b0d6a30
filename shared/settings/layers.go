package settings

import (
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

// The names that are not settings.
const (
	flagConfig = "config"
	flagPrint  = "print-config"
	flagHelp   = "help"
	envConfig  = "CONFIG" // after the prefix
)

// layer is what one source says.
type layer struct {
	values   map[string]value // by path
	problems []Problem
}

type value struct {
	source string // for problems
	raw    any
}

// readFile reads a YAML file. Keys that name no setting are problems.
func (s *schema) readFile(path string) layer {
	l := layer{values: map[string]value{}}
	k := koanf.New(".")
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		l.problems = append(l.problems, Problem{Source: path, What: err.Error()})
		return l
	}
	for _, key := range k.Keys() { // sorted
		raw := k.Get(key)
		leaf := s.find(func(f *field) bool { return f.path == key })
		above := s.find(func(f *field) bool { return strings.HasPrefix(key, f.path+".") })
		switch {
		case leaf != nil:
			l.values[key] = value{path, raw}
		case above != nil:
			l.problems = append(l.problems, Problem{path, above.path, "want " + above.want() + ", got a section"})
		case !s.isSection(key):
			l.problems = append(l.problems, Problem{path, key, "unknown setting"})
		case raw != nil && !isEmptyMap(raw): // a section without lines is none
			l.problems = append(l.problems, Problem{path, key, "want a section, got a value"})
		}
	}
	return l
}

func isEmptyMap(raw any) bool {
	m, ok := raw.(map[string]any)
	return ok && len(m) == 0
}

// envLayer is a layer that may also name the file.
type envLayer struct {
	layer
	config string
}

// serviceLink is the form of the variables that Kubernetes adds for a service of
// the same name: for a service yard-history, YARD_HISTORY_PORT and the like. They
// are none of ours.
var serviceLink = regexp.MustCompile(`^(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// readEnv reads the variables with the service's prefix. Those that name no
// setting are problems; empty ones count as unset.
func (s *schema) readEnv(environ []string) envLayer {
	l := envLayer{layer: layer{values: map[string]value{}}}
	k := koanf.New(".")
	err := k.Load(env.Provider(".", env.Opt{
		Prefix:      s.prefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, text string) (string, any) {
			if text == "" {
				return "", nil
			}
			if name == s.prefix+envConfig {
				l.config = text
				return "", nil
			}
			f := s.find(func(f *field) bool { return f.env == name })
			if f != nil {
				return f.path, text
			}
			if !serviceLink.MatchString(strings.TrimPrefix(name, s.prefix)) {
				l.problems = append(l.problems, Problem{Source: name, What: "unknown variable"})
			}
			return "", nil
		},
	}), nil)
	if err != nil {
		l.problems = append(l.problems, Problem{Source: "environment", What: err.Error()})
	}
	slices.SortFunc(l.problems, func(a, b Problem) int { return strings.Compare(a.Source, b.Source) })
	for _, f := range s.fields {
		if k.Exists(f.path) {
			l.values[f.path] = value{f.env, k.Get(f.path)}
		}
	}
	return l
}
