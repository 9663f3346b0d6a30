package tidy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// exceptions are findings that have to stay: what they are about, how many, and
// why, read from testdata. A line is `<key> <number> <reason>`.
type exceptions struct {
	file  string
	allow map[string]int
	used  map[string]bool
	bad   []string
}

// exceptionsOf reads testdata/<name>.txt; a tree without it has none.
func exceptionsOf(t *tree, name string) *exceptions {
	e := &exceptions{file: "e2e/tidy/testdata/" + name + ".txt", allow: map[string]int{}, used: map[string]bool{}}
	for line := range strings.Lines(t.text[e.file]) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		n, err := 0, error(nil)
		if len(words) >= 3 {
			n, err = strconv.Atoi(words[1])
		}
		if len(words) < 3 || err != nil {
			e.bad = append(e.bad, fmt.Sprintf("%s: %q is not `<key> <number> <reason>`", e.file, line))
			continue
		}
		e.allow[words[0]] = n
	}
	return e
}

// compare compares a measure with its limit, or with what the exception grants. The
// exception must be exact, so that it shrinks with what it is about.
func (e *exceptions) compare(key string, measure, limit int, finding string) []string {
	granted, ok := e.allow[key]
	if ok && measure > limit {
		e.used[key] = true
	}
	switch {
	case measure <= limit, ok && measure == granted:
		return nil
	case ok && measure < granted:
		return []string{fmt.Sprintf("%s: %s went down to %d: lower the number, so that it stays there", e.file, key, measure)}
	}
	return []string{finding}
}

// rest are the malformed and the needless exceptions.
func (e *exceptions) rest() []string {
	findings := e.bad
	for _, key := range slices.Sorted(maps.Keys(e.allow)) {
		if !e.used[key] {
			findings = append(findings, fmt.Sprintf("%s: %s is no longer needed: delete the line", e.file, key))
		}
	}
	return findings
}
