package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
)

// How a mutant ends, in the words of gremlins.
const (
	statusKilled     = "KILLED"
	statusLived      = "LIVED"
	statusNotCovered = "NOT COVERED"
	statusTimedOut   = "TIMED OUT"
	statusNotViable  = "NOT VIABLE"
)

// mutant is one change of the code and how it ended.
type mutant struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Func   string `json:"func"`
	Type   string `json:"type"`
	Status string `json:"status"`
	// Reason says why a mutant that lived may live.
	Reason string `json:"reason,omitempty"`
}

// parseMutants reads what gremlins wrote, in the order of the code.
func parseMutants(data []byte) ([]mutant, error) {
	var out struct {
		Files []struct {
			Name      string   `json:"file_name"`
			Mutations []mutant `json:"mutations"`
		} `json:"files"`
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("read the results of gremlins: %w", err)
	}
	known := []string{statusKilled, statusLived, statusNotCovered, statusTimedOut, statusNotViable}
	var all []mutant
	for _, f := range out.Files {
		for _, m := range f.Mutations {
			if m.File = f.Name; !slices.Contains(known, m.Status) {
				return nil, fmt.Errorf("%s:%d: unknown status %q", m.File, m.Line, m.Status)
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, compareMutants)
	return all, nil
}

// functionAt is the function around a line: `Type.Method`, `function`, or
// `package` outside of all.
func functionAt(at string, line int) (string, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, at, nil, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if ok && fset.Position(fn.Pos()).Line <= line && line <= fset.Position(fn.End()).Line {
			return functionName(fn), nil
		}
	}
	return "package", nil
}

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
