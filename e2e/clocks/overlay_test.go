package clocks

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
)

// buildSkewed builds services whose clocks can be off (skewed): with a package time of their own, so that whatever reads the
// wall clock reads the wrong one. Durations are measured as ever.
func buildSkewed() (b cluster.Binaries, err error) {
	dir, err := os.MkdirTemp("", "yard-overlay-")
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	list, err := overlay(dir)
	if err != nil {
		return b, err
	}
	if b, err = cluster.Build(); err == nil {
		err = b.BuildServices("-overlay", list) // that of the command would take as long again
	}
	return b, err
}

// skewEnv is how far a process's clock is off, in seconds.
const skewEnv = "YARD_TEST_CLOCK_SKEW_SECONDS"

// skewed sets the clock of each process. Whole seconds only.
func skewed(by func(s cluster.Service, i int) time.Duration) cluster.Option {
	return cluster.WithEnv(func(s cluster.Service, i int) []string {
		return []string{fmt.Sprintf("%s=%d", skewEnv, by(s, i)/time.Second)}
	})
}

// overlay writes a package time whose Now is off, and the file that tells the compiler of it.
func overlay(dir string) (path string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the Go root: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	const look = "\tsec, nsec, mono := runtimeNow()\n"
	head, body, found := strings.Cut(string(source), "\nfunc Now() Time {\n")
	if !found || !strings.HasPrefix(body, look) || !strings.Contains(head, "\nimport (\n") {
		return "", fmt.Errorf("%s: Now is not as expected: adapt %q", original, "e2e/clocks/overlay_test.go")
	}
	text := strings.Replace(head, "\nimport (\n", "\nimport (\n\t\"syscall\"\n", 1) +
		"\nfunc Now() Time {\n" + look + "\tsec += skewSeconds\n" + strings.TrimPrefix(body, look) + skewSource
	changed := filepath.Join(dir, "time.go")
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// skewSource is what package time gets besides. It can import next to nothing.
const skewSource = `
var skewSeconds = func() (n int64) {
	text, _ := syscall.Getenv("` + skewEnv + `")
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= '0' && c <= '9' {
			n = 10*n + int64(c-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		return -n
	}
	return n
}()
`
