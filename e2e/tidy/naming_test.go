package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// spelled matches subjects, streams, buckets and Redis keys, but not the names
// of span attributes (`yardmaster.task_id`) or of environment variables.
var spelled = regexp.MustCompile(`yard\.(v1|history|timer|matching|archive|dead|rpc|hint)\.|yard:\{|YARD_(HISTORY|TIMER|MATCHING|ARCHIVE|DEADLETTER|MEMBERS|CHECKPOINTS)\b`)

// subjects finds names that topology has a function for.
func subjects(t *tree) []string {
	var findings []string
	for _, f := range t.code {
		if f.test || f.dir() == "contracts/topology" || strings.HasPrefix(f.path, "e2e/") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if ok && lit.Kind == token.STRING && spelled.MatchString(lit.Value) {
				findings = append(findings, fmt.Sprintf("%s: %s: subjects and keys are functions of contracts/topology", t.at(lit), lit.Value))
			}
			return true
		})
	}
	return findings
}

// packageComments: every package says what it owns.
func packageComments(t *tree) []string {
	first := map[string]*goFile{}
	documented := map[string]bool{}
	for _, f := range t.code {
		if f.test || strings.HasPrefix(f.path, "contracts/gen/") {
			continue
		}
		if first[f.dir()] == nil {
			first[f.dir()] = f
		}
		if f.syntax.Doc != nil {
			documented[f.dir()] = true
		}
	}
	var findings []string
	for dir, f := range first {
		if !documented[dir] {
			findings = append(findings, fmt.Sprintf("%s: package %s has no comment: say what it owns, what it never does, what happens on failure", dir, f.syntax.Name.Name))
		}
	}
	slices.Sort(findings)
	return findings
}

var emptyNames = []string{"common", "util", "utils", "helper", "helpers", "types", "models", "base", "misc", "lib", "manager", "processor"}

// packageNames: a package is called by a noun of the field.
func packageNames(t *tree) []string {
	var findings []string
	for _, f := range t.code {
		name := strings.TrimSuffix(f.syntax.Name.Name, "_test")
		if slices.Contains(emptyNames, name) {
			findings = append(findings, fmt.Sprintf("%s: package %s says nothing: name it after what it holds", f.path, name))
		}
	}
	return findings
}

// noInit: nothing happens by being imported.
func noInit(t *tree) []string {
	var findings []string
	for _, f := range t.code {
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				findings = append(findings, t.at(fn)+": no init: construct it where it is used")
			}
		}
	}
	return findings
}
