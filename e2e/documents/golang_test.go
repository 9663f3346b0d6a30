package documents

import (
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// known is what blocks of Go use without saying where it is from, by name.
func known() map[string]string {
	return map[string]string{
		"ctx":     "var ctx context.Context",
		"client":  "var client *yard.Client",
		"Email":   "type Email struct{ To, Subject, Customer string }",
		"Receipt": "type Receipt struct{ MessageID string }",
		"send":    "func send(context.Context, Email) error { return nil }",
		"errs":    "var errNoSuchAddress, errTooMany, errNotYet error",
	}
}

const imports = `package documents

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/bulk"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
)

`

// TestGo compiles the blocks of Go of all documents, each with the imports above and what is known. What a block
// does not use is no error.
func TestGo(t *testing.T) {
	testkit.Slow(t, "has the go command compile packages")
	blocks, err := all(Root())
	testkit.NoError(t, err)
	fset := token.NewFileSet()
	compiled := importer.ForCompiler(fset, "gc", exports(t))
	checked := 0
	for _, b := range blocks {
		if b.Language != "go" || b.Why != "" {
			continue
		}
		checked++
		t.Run(b.Place(), func(t *testing.T) {
			file, err := parse(fset, b)
			testkit.NoError(t, err)
			cfg := types.Config{Importer: compiled, Error: func(err error) {
				if soft := (types.Error{}); !errors.As(err, &soft) || !soft.Soft {
					t.Errorf("%s: %v", b.Place(), err)
				}
			}}
			_, _ = cfg.Check("documents", fset, []*ast.File{file}, nil) // its errors went to Error
		})
	}
	if checked < 2 {
		t.Errorf("only %d blocks were compiled", checked)
	}
}

// parse makes a file of a block: the declarations that it begins with, and what follows as a function's body. A block
// with a package clause is a file.
func parse(fset *token.FileSet, b Block) (*ast.File, error) {
	if strings.HasPrefix(b.Text, "package ") {
		return parser.ParseFile(fset, b.Place(), b.Text, parser.SkipObjectResolution)
	}
	paragraphs := strings.SplitAfter(b.Text, "\n\n")
	for n := len(paragraphs); ; n-- {
		declared := strings.Join(paragraphs[:n], "")
		text := imports + declared + "\nfunc _() {\n" + strings.Join(paragraphs[n:], "") + "}\n"
		if _, err := parser.ParseFile(token.NewFileSet(), b.Place(), text, parser.SkipObjectResolution); err != nil {
			if n > 0 {
				continue
			}
			return nil, err
		}
		for name, declaration := range known() {
			if !strings.Contains("\n"+declared, "\ntype "+name+" ") {
				text += declaration + "\n"
			}
		}
		return parser.ParseFile(fset, b.Place(), text, parser.SkipObjectResolution)
	}
}

// exports finds the compiled form of the packages that blocks may import.
func exports(t *testing.T) func(string) (io.ReadCloser, error) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}
	for line := range strings.Lines(imports) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, `"`) {
			args = append(args, strings.Trim(line, `"`))
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	testkit.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[name] = file
	}
	return func(name string) (io.ReadCloser, error) { return os.Open(files[name]) }
}

// all reads the blocks of all documents but the generated ones.
func all(root fs.FS) ([]Block, error) {
	var found []Block
	err := fs.WalkDir(root, ".", func(p string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && p != "." && p != ".github" && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			return fs.SkipDir
		case path.Ext(p) != ".md" || p == "contracts/API.md" || p == "contracts/METRICS.md":
			return nil
		}
		blocks, err := Read(root, p)
		found = append(found, blocks...)
		return err
	})
	return found, err
}
