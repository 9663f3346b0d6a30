package tidy

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// What a core may not use of packages that it may import.
var (
	clockNames = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	// randNames are the ones that need a source, and so a seed.
	randNames = []string{"Rand", "Source", "PCG", "ChaCha8", "Zipf", "New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf"}
)

// corePurity finds what makes a core depend on anything but its arguments.
func corePurity(t *tree) []string {
	var findings []string
	for _, f := range t.code {
		if f.test || classOf(f.dir()) != core {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if why := impure(f, n); why != "" {
				findings = append(findings, t.at(n)+": "+why)
			}
			return true
		})
	}
	return findings
}

func impure(f *goFile, n ast.Node) string {
	if _, ok := n.(*ast.GoStmt); ok {
		return "a core starts no goroutine"
	}
	if _, ok := n.(*ast.SelectStmt); ok {
		return "a core waits for nothing"
	}
	pkg, name, ok := f.selector(n)
	switch {
	case !ok:
		return ""
	case pkg == "time" && slices.Contains(clockNames, name):
		return fmt.Sprintf("time.%s: a core gets the time as an argument", name)
	case strings.HasPrefix(pkg, "math/rand") && !slices.Contains(randNames, name):
		return fmt.Sprintf("rand.%s: a core gets randomness as a number or a *rand.Rand", name)
	case pkg == "fmt" && (strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan")):
		return fmt.Sprintf("fmt.%s: a core prints nothing", name)
	}
	return ""
}
