package chaos_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// within bounds what happens soon in a healthy run.
	within = 90 * time.Second
	// instances of each service.
	instances = 2
)

// binaries are built once for all tests.
var binaries cluster.Binaries

// TestMain runs more clusters side by side than there are cores: most of the time they
// wait, for a takeover or for what was killed to come back.
func TestMain(m *testing.M) {
	testkit.SideBySide(3)
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if testkit.Quick() {
		return m.Run(), nil // its tests of clusters skip themselves
	}
	if binaries, err = cluster.Build(); err != nil {
		return 1, err
	}
	code = m.Run()
	if err := binaries.Remove(); err != nil {
		return 1, err
	}
	if code == 0 {
		err = goleak.Find()
	}
	return code, err
}
