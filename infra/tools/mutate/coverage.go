package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// block is a part of a file that tests came to, as a coverage profile has it.
type block struct{ from, to place }

type place struct{ line, column int }

func (p place) before(o place) bool {
	return p.line < o.line || p.line == o.line && p.column < o.column
}

// widen adds to the coverage profile of the package in dir what Go's coverage has
// no blocks for: the conditions of cases, where the switch was come to, and the
// values of package-level declarations. Gremlins would report their mutants as
// not covered, without a run, whatever the tests do.
func widen(profile []byte, dir string) ([]byte, error) {
	covered, names := map[string][]block{}, map[string]string{}
	for line := range strings.Lines(string(profile)) {
		name, rest, ok := strings.Cut(line, ".go:")
		if !ok {
			continue // the mode
		}
		name += ".go"
		if path.Base(path.Dir(name)) != filepath.Base(dir) {
			continue
		}
		var b block
		var statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from.line, &b.from.column, &b.to.line, &b.to.column, &statements, &count); err != nil {
			return nil, fmt.Errorf("coverage profile: %q: %w", line, err)
		}
		names[path.Base(name)] = name
		if count > 0 {
			covered[path.Base(name)] = append(covered[path.Base(name)], b)
		}
	}
	wide := slices.Clone(profile)
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, at := range files {
		base := filepath.Base(at)
		if names[base] == "" {
			continue // a test, or nothing but declarations of types
		}
		more, err := missed(at, covered[base])
		if err != nil {
			return nil, err
		}
		for _, b := range more {
			wide = fmt.Appendf(wide, "%s:%d.%d,%d.%d 1 1\n", names[base], b.from.line, b.from.column, b.to.line, b.to.column)
		}
	}
	return wide, nil
}

// missed are the conditions and values in a file that count as covered, too.
func missed(at string, covered []block) ([]block, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, at, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	span := func(from, to token.Pos) block {
		a, b := fset.Position(from), fset.Position(to)
		return block{place{a.Line, a.Column}, place{b.Line, b.Column}}
	}
	var more []block
	for _, decl := range file.Decls {
		if values, ok := decl.(*ast.GenDecl); ok && (values.Tok == token.CONST || values.Tok == token.VAR) {
			more = append(more, span(values.Pos(), values.End()))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		choice, ok := n.(*ast.SwitchStmt)
		if !ok || !slices.ContainsFunc(covered, func(b block) bool { return b.contains(span(choice.Pos(), choice.Pos()).from) }) {
			return true
		}
		for _, clause := range choice.Body.List {
			for _, condition := range clause.(*ast.CaseClause).List {
				more = append(more, span(condition.Pos(), condition.End()))
			}
		}
		return true
	})
	return more, nil
}

func (b block) contains(p place) bool { return !p.before(b.from) && !b.to.before(p) }
