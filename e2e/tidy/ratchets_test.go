package tidy

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// The caps of what one person can hold: alarms, not goals. Test files do not count. What was over a cap when its rule
// came is in testdata/ratchets.txt; lines are granted there in steps of linesStep, so that a small change needs no new number.
const (
	methodsMax       = 40
	packageLinesMax  = 3000
	packageFilesMax  = 25
	fieldsMax        = 25
	backPercentMax   = 10
	backReferencesOf = 20 // a package with fewer references between its files has no direction yet
	linesStep        = 100
	percentStep      = 5
)

// rooms holds types, packages and structs under their caps.
func rooms(t *tree) []string {
	over := exceptionsOf(t, "ratchets")
	methods, lineCount, files := map[string]int{}, map[string]int{}, map[string][]*goFile{}
	var findings []string
	for _, f := range t.code {
		if f.test {
			continue
		}
		dir := f.dir()
		lineCount[dir] += lines(t.text[f.path])
		files[dir] = append(files[dir], f)
		for _, decl := range f.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if receiver, _, ok := strings.Cut(functionName(decl), "."); ok {
					methods[dir+"."+receiver]++
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if s, ok := structOf(spec); ok {
						key := dir + ":" + spec.(*ast.TypeSpec).Name.Name
						findings = append(findings, over.compare(key, fieldCount(s), fieldsMax, fmt.Sprintf(
							"%s: %s has %d fields, at most %d are allowed", t.at(spec), key, fieldCount(s), fieldsMax))...)
					}
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(methods)) {
		findings = append(findings, over.compare(key, methods[key], methodsMax, fmt.Sprintf(
			"%s has %d methods, at most %d are allowed: give a part of its state to a type of its own", key, methods[key], methodsMax))...)
	}
	for _, dir := range slices.Sorted(maps.Keys(files)) {
		n := lineCount[dir]
		findings = append(findings, over.compare(dir, upTo(n, linesStep), packageLinesMax, fmt.Sprintf(
			"%s has %d lines, at most %d are allowed: what is its second subject?", dir, n, packageLinesMax))...)
		n = len(files[dir])
		findings = append(findings, over.compare(dir+":files", n, packageFilesMax, fmt.Sprintf(
			"%s has %d files, at most %d are allowed", dir, n, packageFilesMax))...)
		all, back := references(files[dir])
		if all < backReferencesOf {
			continue
		}
		percent := upTo(100*back/all, percentStep)
		findings = append(findings, over.compare(dir+":back", percent, backPercentMax, fmt.Sprintf(
			"%s: %d of %d references between its files run back up, at most %d %% may: name one file that knows less", dir, back, all, backPercentMax))...)
	}
	return append(findings, over.rest()...)
}

// upTo rounds n up to a multiple of step.
func upTo(n, step int) int { return (n + step - 1) / step * step }

func structOf(spec ast.Spec) (*ast.StructType, bool) {
	named, ok := spec.(*ast.TypeSpec)
	if !ok {
		return nil, false
	}
	s, ok := named.Type.(*ast.StructType)
	return s, ok
}

func fieldCount(s *ast.StructType) (n int) {
	for _, field := range s.Fields.List {
		n += max(1, len(field.Names))
	}
	return n
}

// references counts the pairs of files of one package of which the first uses a name that the second declares, and
// how many of these remain against the direction when the files are ordered so that few do.
func references(files []*goFile) (all, back int) {
	home := map[string]*goFile{} // nil: declared more than once, so a use of it says nothing
	declare := func(name string, f *goFile) {
		if other, known := home[name]; known && other != f {
			f = nil
		}
		home[name] = f
	}
	for _, f := range files {
		for _, name := range declared(f) {
			declare(name, f)
		}
	}
	uses := map[*goFile]map[*goFile]bool{}
	for _, f := range files {
		uses[f] = map[*goFile]bool{}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			var name string
			switch n := n.(type) {
			case *ast.SelectorExpr:
				name = "." + n.Sel.Name
			case *ast.Ident:
				name = n.Name
			}
			if to := home[name]; to != nil && to != f {
				uses[f][to] = true
			}
			return true
		})
		all += len(uses[f])
	}
	place := map[*goFile]int{}
	for i, f := range downwards(files, uses) {
		place[f] = i
	}
	for from, targets := range uses {
		for to := range targets {
			if place[to] < place[from] {
				back++
			}
		}
	}
	return all, back
}

// declared are the names that a file declares for its package; methods have a dot in front.
func declared(f *goFile) (names []string) {
	for _, decl := range f.syntax.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv != nil {
				names = append(names, "."+decl.Name.Name)
				continue
			}
			names = append(names, decl.Name.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// downwards orders files so that few use one in front of them: the heuristic of Eades, Lin and Smyth for feedback arc
// sets (1993). A file that no other uses comes first, one that uses no other comes last, and of a circle the one first that uses
// most more files than use it.
func downwards(files []*goFile, uses map[*goFile]map[*goFile]bool) []*goFile {
	left := slices.Clone(files)
	slices.SortFunc(left, func(a, b *goFile) int { return strings.Compare(a.path, b.path) })
	degrees := func(f *goFile) (out, in int) {
		for _, other := range left {
			if uses[f][other] {
				out++
			}
			if uses[other][f] {
				in++
			}
		}
		return out, in
	}
	var first, last []*goFile
	for len(left) > 0 {
		best, most, sink := 0, -len(files), -1
		for i, f := range left {
			out, in := degrees(f)
			if out == 0 {
				sink = i
				break
			}
			if in == 0 {
				best = i
				break
			}
			if out-in > most {
				best, most = i, out-in
			}
		}
		if sink >= 0 {
			last = append(last, left[sink])
			left = slices.Delete(left, sink, sink+1)
			continue
		}
		first = append(first, left[best])
		left = slices.Delete(left, best, best+1)
	}
	slices.Reverse(last)
	return append(first, last...)
}
