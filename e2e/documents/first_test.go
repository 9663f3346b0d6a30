package documents

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// guide has the first program of a newcomer, whole; this is what the guide says that it prints.
	guide  = "contracts/docs/first-task.md"
	prints = "{<ann@example.com>} <nil>\n"
	// guideURL is where the guide's system is.
	guideURL = "nats://127.0.0.1:4222"
	// firstLinesMax bounds the first program.
	firstLinesMax = 25
)

// TestFirstProgram goes a newcomer's way: the program of the guide, saved to a file and run from the repository's root.
func TestFirstProgram(t *testing.T) {
	testkit.Slow(t, "has the go command compile packages")
	program := firstProgram(t)
	world := newWorld(t)
	program = strings.Replace(program, guideURL, world.url, 1)
	file := filepath.Join(t.TempDir(), "first.go")
	testkit.NoError(t, os.WriteFile(file, []byte(program), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "run", file)
	cmd.Dir = world.root
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != prints {
		t.Errorf("it printed %q (%v), want %q", out, err, prints)
	}
}

// TestFirstProgramIsSmall counts every line that is neither empty nor a comment, the imports and braces too.
func TestFirstProgramIsSmall(t *testing.T) {
	lines := 0
	for line := range strings.Lines(firstProgram(t)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	if lines > firstLinesMax {
		t.Errorf("the first program of %s has %d lines, at most %d are allowed", guide, lines, firstLinesMax)
	}
}

func firstProgram(t *testing.T) string {
	t.Helper()
	blocks, err := Read(Root(), guide)
	testkit.NoError(t, err)
	for _, b := range blocks {
		if b.Language == "go" && strings.HasPrefix(b.Text, "package main\n") && strings.Contains(b.Text, guideURL) {
			return b.Text
		}
	}
	t.Fatalf("%s has no program that connects to %s", guide, guideURL)
	return ""
}
