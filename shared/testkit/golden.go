package testkit

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// update must be a flag of the test binary before the testing package parses its
// flags, which leaves no other place than here.
var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Golden compares got with the file at path, which is relative to the package's
// folder, by custom below testdata. With -update it writes the file instead.
func Golden(tb testing.TB, path string, got []byte) {
	tb.Helper()
	if *update {
		if err := writeGolden(path, got); err != nil {
			tb.Fatalf("update golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatalf("golden file: %v (make it with -update)", err)
	}
	if diff := firstDifference(want, got); diff != "" {
		tb.Errorf("%s differs (accept with -update)\n%s", path, diff)
	}
}

func writeGolden(path string, got []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, got, 0o644)
}

// firstDifference tells the first line in which two texts differ, or "".
func firstDifference(want, got []byte) string {
	if bytes.Equal(want, got) {
		return ""
	}
	w, g := bytes.Split(want, []byte("\n")), bytes.Split(got, []byte("\n"))
	for i := range max(len(w), len(g)) {
		switch {
		case i >= len(w):
			return fmt.Sprintf("line %d: want the end, got %q", i+1, g[i])
		case i >= len(g):
			return fmt.Sprintf("line %d: want %q, got the end", i+1, w[i])
		case !bytes.Equal(w[i], g[i]):
			return fmt.Sprintf("line %d:\n  want %q\n  got  %q", i+1, w[i], g[i])
		}
	}
	return "" // unreachable: texts that differ differ in some line
}
