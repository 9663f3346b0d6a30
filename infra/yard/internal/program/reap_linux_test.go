package program

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// As the first process of a container the worker inherits what programs leave behind, and no one else takes it off the
// table of processes.
func TestNoDeadProcessIsLeftToTheFirstOfAContainer(t *testing.T) {
	subreaper(t, 1)
	t.Cleanup(func() { subreaper(t, 0) })
	child := filepath.Join(t.TempDir(), "child")
	testkit.NoError(t, testkit.Err(runner("sleep 1000 >/dev/null 2>&1 & echo $! >"+child).Run(t.Context(), attempt(""))))
	text, err := os.ReadFile(child)
	testkit.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	testkit.NoError(t, err)
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

// subreaper makes this process inherit as the first one of a container does (PR_SET_CHILD_SUBREAPER).
func subreaper(t *testing.T, on uintptr) {
	t.Helper()
	const setChildSubreaper = 36
	if _, _, code := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, on, 0); code != 0 {
		t.Fatal(code)
	}
}
