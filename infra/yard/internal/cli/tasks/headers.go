package tasks

import (
	"maps"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// headersOf reads --header flags. Headers that the API refuses are refused there.
func headersOf(flags []string) (map[string]string, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(flags))
	for _, text := range flags {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, command.Usagef("--header %q: want name=value", text)
		}
		if _, twice := all[name]; twice {
			return nil, command.Usagef("--header %s is given twice", name)
		}
		all[name] = value
	}
	return all, nil
}

// headerText is headers on one line, by name.
func headerText(all map[string]string) string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + "=" + command.OneLine(all[name]))
	}
	return b.String()
}
