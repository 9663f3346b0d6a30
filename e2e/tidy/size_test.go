package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
)

// The caps. Aim for 300 and 40.
const (
	fileLinesMax     = 500
	functionLinesMax = 70
	mainLinesMax     = 60
)

// sizes holds files and functions under their caps; what was over when the rule
// came is in testdata/sizes.txt.
func sizes(t *tree) []string {
	over := exceptionsOf(t, "sizes")
	var findings []string
	for _, p := range t.paths {
		if path.Ext(p) == ".lua" {
			findings = append(findings, fileSize(over, p, t.text[p])...)
		}
	}
	for _, f := range t.code {
		findings = append(findings, fileSize(over, f.path, t.text[f.path])...)
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
			key := f.path + ":" + functionName(fn)
			findings = append(findings, over.compare(key, n, functionLinesMax,
				fmt.Sprintf("%s: %s has %d lines, at most %d are allowed", t.at(fn), functionName(fn), n, functionLinesMax))...)
		}
	}
	return append(findings, over.rest()...)
}

func fileSize(over *exceptions, p, text string) []string {
	most := fileLinesMax
	if strings.HasPrefix(p, "services/") && strings.Contains(p, "/cmd/") {
		most = mainLinesMax
	}
	n := lines(text)
	return over.compare(p, n, most, fmt.Sprintf("%s has %d lines, at most %d are allowed", p, n, most))
}

// functionName is `Type.Method` or `function`.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	recv := fn.Recv.List[0].Type
	for {
		switch x := recv.(type) {
		case *ast.StarExpr:
			recv = x.X
		case *ast.IndexExpr:
			recv = x.X
		case *ast.IndexListExpr:
			recv = x.X
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}
