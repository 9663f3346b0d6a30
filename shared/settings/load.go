package settings

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Options is what a person asked for besides settings.
type Options struct {
	// PrintConfig asks for Print and no start (--print-config). The settings have
	// been checked as for a start.
	PrintConfig bool
	// Help asks for Usage and no start (--help, -h). Load has not looked at anything
	// else.
	Help bool
}

// Load returns def with everything on top that the file, the environment and args
// say. Name is the service's, as in its variables: "history" reads YARD_HISTORY_…;
// args are those after the program's name, env is os.Environ(). The file is named
// by --config, or by YARD_<NAME>_CONFIG; without either there is none.
//
// The error, if any, is Problems with all that is wrong. T is a struct as the
// package's comment describes; a malformed one panics.
func Load[T any](name string, def T, args []string, env []string) (T, Options, error) {
	s := newSchema(name, reflect.TypeFor[T]())
	flags := s.readFlags(args)
	if flags.opts.Help {
		return def, flags.opts, nil
	}
	environment := s.readEnv(env)
	file := layer{}
	if path := cmp.Or(flags.config, environment.config); path != "" {
		file = s.readFile(path)
	}

	cfg := def
	root := reflect.ValueOf(&cfg).Elem()
	var problems Problems
	origin := map[string]string{} // by path: the source that set it last
	for _, l := range []layer{file, environment, flags} {
		problems = append(problems, l.problems...)
		for i := range s.fields {
			f := &s.fields[i]
			v, ok := l.values[f.path]
			if !ok {
				continue
			}
			fresh := reflect.New(f.typ).Elem()
			if err := f.set(fresh, v.raw); err != nil {
				problems = append(problems, Problem{v.source, f.path, err.Error()})
				continue
			}
			root.FieldByIndex(f.index).Set(fresh)
			origin[f.path] = v.source
		}
	}
	problems = append(problems, s.validate(root, origin)...)
	if len(problems) > 0 {
		return cfg, flags.opts, problems
	}
	return cfg, flags.opts, nil
}

// validate asks every struct of the config that can check itself.
func (s *schema) validate(root reflect.Value, origin map[string]string) Problems {
	var all Problems
	for _, sec := range s.sections {
		for _, p := range checkStruct(root.FieldByIndex(sec.index).Addr().Interface()) {
			p.Path = joinPath(sec.path, p.Path)
			if p.Source == "" {
				p.Source = s.blame(p.Path, origin)
			}
			// A struct may hand on what its fields say of themselves, or have their
			// method by embedding: reported once is enough.
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// checkStruct calls whichever form of Validate the struct has.
func checkStruct(at any) []Problem {
	switch v := at.(type) {
	case interface{ Validate() []Problem }:
		return v.Validate()
	case interface{ Validate() error }:
		return fromError(v.Validate())
	default:
		return nil
	}
}

// fromError makes a problem of an error, or several of a plain errors.Join. An
// error that wraps several and has words of its own stays one.
func fromError(err error) []Problem {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return []Problem{{What: err.Error()}}
	}
	var all []Problem
	for _, e := range joined.Unwrap() {
		all = append(all, fromError(e)...)
	}
	return all
}

// blame tells which source set a path: "default" if it is a setting that no one
// set, nothing if it is not one setting.
func (s *schema) blame(path string, origin map[string]string) string {
	if source := origin[path]; source != "" {
		return source
	}
	if s.at(path) != nil {
		return "default"
	}
	return ""
}

func joinPath(section, path string) string { return strings.Trim(section+"."+path, ".") }

// Problem is one thing wrong with the settings.
type Problem struct {
	// Source tells where the person has to look: a file's name, a variable, a flag,
	// or "default" for a value no one set. It may be empty.
	Source string
	// Path is the setting, as in the file: "window.tasks_max". It may be empty.
	Path string
	// The kinds of problems.
	What string
}

// String gives the problem as one line.
func (p Problem) String() string {
	parts := []string{p.Source, p.Path, p.What}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// Problems is the error of Load: everything that is wrong, in the order file,
// environment, flags, validation.
type Problems []Problem

// Error lists the problems, one a line.
func (ps Problems) Error() string {
	var text strings.Builder
	if len(ps) == 1 {
		return "settings: " + ps[0].String()
	}
	fmt.Fprintf(&text, "settings: %d problems", len(ps))
	for _, p := range ps {
		fmt.Fprintf(&text, "\n  %s", p)
	}
	return text.String()
}
