package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// keysFile spells the keys of log lines, spans and metrics.
const keysFile = "contracts/signals/keys.go"

// logger matches what a logger is called.
var logger = regexp.MustCompile(`(?i)^log(ger)?$`)

// logKeys: log lines have the keys of contracts/signals and no others, so that one search finds what all
// services say of a task.
func logKeys(t *tree) []string {
	known := stringsOf(t, keysFile)
	var findings []string
	for _, f := range t.code {
		if f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			for _, key := range keysOfLog(n) {
				if !known[key.text] {
					findings = append(findings, fmt.Sprintf("%s: log key %q is not in %s", t.at(key.lit), key.text, keysFile))
				}
			}
			return true
		})
	}
	return findings
}

type logKey struct {
	lit  *ast.BasicLit
	text string
}

// keysOfLog are the literal keys of a call such as s.Log.Warn("text", key, value).
func keysOfLog(n ast.Node) (keys []logKey) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !logger.MatchString(lastName(sel.X)) {
		return nil
	}
	first := slices.Index([]string{"With", "Debug", "Info", "Warn", "Error"}, sel.Sel.Name)
	if first < 0 {
		return nil
	}
	for i := min(first, 1); i < len(call.Args); i += 2 {
		lit, ok := call.Args[i].(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		if text, err := strconv.Unquote(lit.Value); err == nil {
			keys = append(keys, logKey{lit, text})
		}
	}
	return keys
}

// lastName is the name at the end of x, o.x or f().x.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// stringsOf are the string literals of a file.
func stringsOf(t *tree, path string) map[string]bool {
	all := map[string]bool{}
	for _, f := range t.code {
		if f.path != path {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				all[strings.Trim(lit.Value, "\"`")] = true
			}
			return true
		})
	}
	return all
}
