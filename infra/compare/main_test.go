package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/load"
	"github.com/yardmaster-io/yardmaster/infra/compare/internal/report"
)

// TestCompare compares the two systems that need no other server than `yard`.
func TestCompare(t *testing.T) {
	t.Parallel()
	program := yard(t)
	t.Run("short", func(t *testing.T) { short(t, program) })
	t.Run("interrupted", func(t *testing.T) { interrupted(t, program) })
}

func short(t *testing.T, program string) {
	out := t.TempDir()
	o := parsed(t, "--runs", "1", "--duration", "200ms", "--only", "yardmaster,jetstream", "--yard", program, "--out", out, "--dir", t.TempDir())
	var page strings.Builder
	if err := compare(t.Context(), o, &page, t.Output()); err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(read(t, out, "compare.json"), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Settings) != 4 || len(r.Ratios) == 0 {
		t.Fatalf("%d settings and %d ratios, want 2 systems at 2 settings of durability, and ratios", len(r.Settings), len(r.Ratios))
	}
	for _, s := range r.Settings {
		for _, m := range load.Metrics {
			if v, measured := s.Median[m.Key]; !measured || v < 0 {
				t.Errorf("%s, sync %s: %s is %v", s.System, s.Sync, m.Name, v)
			}
		}
		if s.Median["w3_p50_ms"] == 0 || s.Median["w5_accepted_per_s"] == 0 {
			t.Errorf("%s, sync %s: no latency, or nothing was accepted: %v", s.System, s.Sync, s.Median)
		}
	}
	if got := string(read(t, out, "compare.md")); got != page.String() || !strings.Contains(got, "W3 submit to handler, p99, ms |") {
		t.Errorf("the page is not what was printed, or has no table:\n%s", got)
	}
	wellFormed(t, read(t, out, "compare.svg"))
}

// interrupted ends a comparison as ctrl-C does: servers and data are removed, and no report is written.
func interrupted(t *testing.T, program string) {
	out, dir := t.TempDir(), t.TempDir()
	o := parsed(t, "--duration", "1m", "--only", "jetstream", "--yard", program, "--out", out, "--dir", dir)
	ctx, interrupt := context.WithCancel(t.Context())
	progress, written := io.Pipe()
	go func() {
		_, _ = progress.Read(make([]byte, 1000)) // the first line says that the measurement begins
		interrupt()
		_, _ = io.Copy(io.Discard, progress)
	}()
	began := time.Now()
	if err := compare(ctx, o, io.Discard, written); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the interrupt took %v", took)
	}
	for _, folder := range []string{out, dir} {
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("%s has %v, %v; want nothing", folder, left, err)
		}
	}
}

// TestMissing leaves out a system that is not on the machine, and refuses to compare nothing.
func TestMissing(t *testing.T) {
	t.Parallel()
	var progress strings.Builder
	o := parsed(t, "--only", "yardmaster", "--yard", filepath.Join(t.TempDir(), "absent"))
	if err := compare(t.Context(), o, io.Discard, &progress); err == nil {
		t.Error("a comparison of nothing was accepted")
	}
	if !strings.Contains(progress.String(), "left out: yardmaster: no program") {
		t.Errorf("progress is %q", progress.String())
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--runs", "0"}, {"--duration", "1ms"}, {"extra"}, {"--unknown"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	o := parsed(t, "--only", "other", "--yard", os.Args[0])
	if err := compare(t.Context(), o, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "want some of") {
		t.Errorf("an unknown system: %v", err)
	}
}

func parsed(t *testing.T, args ...string) options {
	t.Helper()
	o, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// yard builds the program of the working tree, in the workspace of the repository.
func yard(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "yard")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./infra/yard")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build yard: %v: %s", err, out)
	}
	return path
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func wellFormed(t *testing.T, picture []byte) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(string(picture))); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}
