package acceptance_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// binaries are built once for all tests.
var binaries cluster.Binaries

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if testkit.Quick() {
		return m.Run(), nil // its test skips itself
	}
	if binaries, err = cluster.Build(); err != nil {
		return 1, err
	}
	return m.Run(), binaries.Remove()
}
