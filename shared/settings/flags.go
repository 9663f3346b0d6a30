package settings

import (
	"reflect"
	"strconv"
	"strings"
)

// readFlags reads --name=value and --name value; a boolean may stand alone. It
// goes on after a problem, so that one start reports all of them.
func (s *schema) readFlags(args []string) layer {
	l := layer{values: map[string]value{}}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, text, given := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		switch {
		case arg == "-h" || arg == "--"+flagHelp:
			l.opts.Help = true
			continue
		case !strings.HasPrefix(arg, "--") || name == "":
			l.add(Problem{Source: arg, What: "unexpected argument"})
			continue
		}
		f := s.find(func(f *field) bool { return f.flag == name })
		alone := name == flagPrint || (f != nil && f.typ.Kind() == reflect.Bool)
		switch {
		case given:
		case alone:
			text = "true"
		case len(args) > 0 && !strings.HasPrefix(args[0], "--"):
			text, args = args[0], args[1:]
		case f != nil || name == flagConfig:
			l.add(Problem{Source: "--" + name, What: "needs a value"})
			continue
		}
		l.take(name, f, text)
	}
	return l
}

// take stores one flag whose value is known.
func (l *layer) take(name string, f *field, text string) {
	source := "--" + name
	switch {
	case f != nil:
		l.values[f.path] = value{source, text}
	case name == flagConfig:
		l.config = text
	case name == flagPrint:
		on, err := strconv.ParseBool(text)
		if err != nil {
			l.add(Problem{Source: source, What: "want true or false"})
		}
		l.opts.PrintConfig = on
	default:
		l.add(Problem{Source: source, What: "unknown flag"})
	}
}
