package settings

import (
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
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
	// config is the file that it names.
	config string
	// opts are what flags ask for besides settings.
	opts Options
}

func (l *layer) add(p Problem) { l.problems = append(l.problems, p) }

type value struct {
	source string // for problems
	raw    any
}

// readFile reads a YAML file. Keys that name no setting are problems.
func (s *schema) readFile(path string) layer {
	l := layer{values: map[string]value{}}
	k := koanf.New(".")
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		l.add(Problem{Source: path, What: err.Error()})
		return l
	}
	for _, key := range k.Keys() { // sorted
		raw := k.Get(key)
		leaf := s.at(key)
		above := s.find(func(f *field) bool { return strings.HasPrefix(key, f.path+".") })
		switch {
		case leaf != nil:
			l.values[key] = value{path, raw}
		case above != nil:
			l.add(Problem{path, above.path, "want " + above.want() + ", got a section"})
		case !s.isSection(key):
			l.add(Problem{path, key, "unknown setting"})
		case raw != nil && !isEmptyMap(raw): // a section without lines is none
			l.add(Problem{path, key, "want a section, got a value"})
		}
	}
	return l
}

func isEmptyMap(raw any) bool {
	m, ok := raw.(map[string]any)
	return ok && len(m) == 0
}

// serviceLink is the form of the variables that Kubernetes adds for a service of
// the same name: for a service yard-history, YARD_HISTORY_PORT and the like. They
// are none of ours.
var serviceLink = regexp.MustCompile(`^(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// readEnv reads the variables with the service's prefix. Those that name no
// setting are problems; empty ones count as unset.
func (s *schema) readEnv(environ []string) layer {
	l := layer{values: map[string]value{}}
	for _, variable := range environ {
		name, text, _ := strings.Cut(variable, "=")
		rest, ours := strings.CutPrefix(name, s.prefix)
		f := s.find(func(f *field) bool { return f.env == name })
		switch {
		case !ours || text == "":
		case rest == envConfig:
			l.config = text
		case f != nil:
			l.values[f.path] = value{f.env, text}
		case !serviceLink.MatchString(rest):
			l.add(Problem{Source: name, What: "unknown variable"})
		}
	}
	slices.SortFunc(l.problems, func(a, b Problem) int { return strings.Compare(a.Source, b.Source) })
	return l
}
