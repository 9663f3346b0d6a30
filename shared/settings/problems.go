package settings

import (
	"fmt"
	"slices"
	"strings"
)

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
