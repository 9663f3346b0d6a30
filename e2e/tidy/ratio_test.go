package tidy

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// share is how many lines of code some part of the tree has, in tests and in what they test. Blank lines, comments and
// generated files are none.
type share struct{ tests, source int }

func (s share) String() string {
	return fmt.Sprintf("%d lines of tests for %d of source, %.2f", s.tests, s.source, float64(s.tests)/float64(max(s.source, 1)))
}

// shares are those of each module, by its path, and of each folder of the top level.
func shares(t *tree) (modules, folders map[string]share) {
	modules, folders = map[string]share{}, map[string]share{}
	for _, f := range t.code {
		n := codeLines(t.text[f.path])
		top, _, _ := strings.Cut(f.path, "/")
		for _, into := range []struct {
			all map[string]share
			key string
		}{{modules, owner(t, f.path)}, {folders, top}} {
			s := into.all[into.key]
			if f.test || isTestPackage(f.dir()) {
				s.tests += n
			} else {
				s.source += n
			}
			into.all[into.key] = s
		}
	}
	return modules, folders
}

// owner is the module that a file belongs to, by its directory; "." is the one at the root.
func owner(t *tree, file string) string {
	dirs := map[string]bool{}
	for _, m := range t.mods {
		dirs[m.dir] = true
	}
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if dirs[dir] {
			return dir
		}
	}
	return "."
}

// codeLines counts the lines that are neither blank nor a comment alone.
func codeLines(text string) (n int) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// moreTestsThanSource: a module's own tests are what its next reader has, when nothing else of the repository is at
// hand. The simulators that tests share are tests too.
func moreTestsThanSource(t *tree) (findings []string) {
	modules, _ := shares(t)
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		if s := modules[module]; s.tests < s.source {
			findings = append(findings, fmt.Sprintf("module %s: %v: write tests until there are as many", module, s))
		}
	}
	return findings
}
