package tidy

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// namesFile lists words that no declared name contains, and what to write instead.
const namesFile = "e2e/tidy/testdata/identifiers.txt"

// plainNames: types, functions, methods, fields, constants and variables of packages have the field's own words. What had
// others when the rule came is in testdata/identifiersleft.txt, by package; that number may only shrink.
func plainNames(t *tree) []string {
	avoid, findings := avoidedNames(t)
	bad := map[string][]string{}
	for _, f := range t.code {
		if f.test {
			continue
		}
		for _, name := range named(f) {
			words := strings.Join(wordsOf(name.Name), " ")
			for _, w := range avoid {
				if found := w.match.FindString(w.without.ReplaceAllString(words, "")); found != "" {
					bad[f.dir()] = append(bad[f.dir()], fmt.Sprintf("%s: %s: %q: write: %s", t.at(name), name.Name, found, w.instead))
				}
			}
		}
	}
	left := exceptionsOf(t, "identifiersleft")
	for _, dir := range slices.Sorted(maps.Keys(bad)) {
		findings = append(findings, left.compare(dir, len(bad[dir]), 0, strings.Join(bad[dir], "\n"))...)
	}
	return append(findings, left.rest()...)
}

// avoidedName is one line of namesFile: `<words> → <what to write>`, or `<words> but <words> → <what to write>`.
type avoidedName struct {
	match, without *regexp.Regexp
	instead        string
}

func avoidedNames(t *tree) (avoid []avoidedName, findings []string) {
	for line := range strings.Lines(t.text[namesFile]) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words, instead, ok := strings.Cut(line, " → ")
		words, but, _ := strings.Cut(words, " but ")
		match, err := regexp.Compile(`\b(` + words + `)\b`)
		without, butErr := regexp.Compile(`\b(` + cmp.Or(but, "-") + `)\b`)
		if !ok || err != nil || butErr != nil {
			findings = append(findings, fmt.Sprintf("%s: %q is not `<words> [but <words>] → <what to write>`", namesFile, line))
			continue
		}
		avoid = append(avoid, avoidedName{match, without, instead})
	}
	return avoid, findings
}

// named are the names that a file declares, fields and methods of interfaces among them.
func named(f *goFile) (names []*ast.Ident) {
	for _, decl := range f.syntax.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			names = append(names, fn.Name)
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				names = append(names, n.Name)
			case *ast.ValueSpec:
				names = append(names, n.Names...)
			case *ast.StructType:
				for _, field := range n.Fields.List {
					names = append(names, field.Names...)
				}
			case *ast.InterfaceType:
				for _, method := range n.Methods.List {
					names = append(names, method.Names...)
				}
			case *ast.FuncLit:
				return false
			}
			return true
		})
	}
	return names
}

// wordsOf are the words of a name in lower case: `maxLeaseIDs` has max, lease, ids.
func wordsOf(name string) (words []string) {
	runes := []rune(name)
	from := 0
	for i := 1; i <= len(runes); i++ {
		ends := i == len(runes) || runes[i] == '_' ||
			unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]) && runes[i+1] != 's')
		if ends {
			if word := strings.ToLower(strings.Trim(string(runes[from:i]), "_")); word != "" {
				words = append(words, word)
			}
			from = i
		}
	}
	return words
}
