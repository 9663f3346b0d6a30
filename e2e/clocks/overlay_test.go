package clocks

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
)

// buildSkewed builds services whose clocks can be off (skewed): each time.Now of this repository is one that is off. What others wrote reads the
// right clock, and is not built again. Durations are measured as ever.
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
		err = b.BuildServices("-overlay", list)
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

// overlay writes what the compiler reads instead of the files that look at the clock, and the file that tells it of them.
func overlay(dir string) (path string, err error) {
	out, err := exec.Command("go", "list", "-f", `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`, "work").Output()
	if err != nil {
		return "", fmt.Errorf("list the files: %w", err)
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", modulePath+"/contracts").Output()
	if err != nil {
		return "", fmt.Errorf("find contracts: %w", err)
	}
	replace := map[string]string{}
	write := func(original, text string) error {
		changed := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[original] = changed
		return os.WriteFile(changed, []byte(text), 0o600)
	}
	if err := write(filepath.Join(strings.TrimSpace(string(root)), "skewed", "skewed.go"), skewedSource); err != nil {
		return "", err
	}
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSpace(file)
		source, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		text := clock.ReplaceAllString(string(source), "skewed.Now")
		if text == string(source) {
			continue
		}
		text = strings.Replace(text, "\nimport (\n", "\nimport (\n\t\""+modulePath+"/contracts/skewed\"\n", 1)
		if err := write(file, text+"\nvar _ time.Time\n"); err != nil { // it may have imported package time for Now alone
			return "", err
		}
	}
	if len(replace) < 30 {
		return "", fmt.Errorf("only %d files read the clock: adapt %q", len(replace)-1, "e2e/clocks/overlay_test.go")
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

const modulePath = "github.com/yardmaster-io/yardmaster"

// clock is where a file reads the clock.
var clock = regexp.MustCompile(`\btime\.Now\b`)

// skewedSource is the package that they read instead. A Time of time.Now has the seconds of the wall clock in bits 30 to 62 of its first word; the reading
// of the monotonic clock, by which durations are measured, is in the second one.
const skewedSource = `// Package skewed is a clock that is off.
package skewed

import (
	"os"
	"strconv"
	"time"
	"unsafe"
)

var seconds, _ = strconv.ParseInt(os.Getenv("` + skewEnv + `"), 10, 64)

// Now is off by so much.
func Now() time.Time {
	now := time.Now()
	*(*uint64)(unsafe.Pointer(&now)) += uint64(seconds) << 30
	return now
}
`
