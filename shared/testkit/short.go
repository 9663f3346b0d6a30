package testkit

import (
	"flag"
	"os"
	"testing"
)

// testsEnv asks for all tests with the value testsAll: those of Minutes run too.
const testsEnv, testsAll = "YARD_TESTS", "all"

// Minutes skips a test in an ordinary run, `go test work`, which a person waits for: such tests disturb whole
// clusters of processes, or take more than about half a minute. Continuous integration runs them, one package after another.
// Why completes the sentence "left out of an ordinary run: the test …".
func Minutes(tb testing.TB, why string) {
	tb.Helper()
	if Short() || os.Getenv(testsEnv) != testsAll {
		tb.Skipf("left out of an ordinary run, %s=%s runs it: the test %s", testsEnv, testsAll, why)
	}
}

// Short tells whether the tests run as `go test -short`: what a person waits for between two edits. It may be
// called in TestMain too, before the flags are parsed.
//
// A short run proves what one process can prove soon. It leaves out:
//   - processes of our own, which it neither builds nor starts, and other programs but a single redis-server;
//   - clusters of NATS or of Redis (one NATS server inside the test's process is none);
//   - whatever takes more than about a second by itself;
//   - most rounds of random runs: a few seeds say whether a change is plainly wrong.
//
// Nothing is left out in silence: a test says so by Long, a count by Rounds. What even an ordinary run leaves out says so by
// Minutes.
func Short() bool {
	if !flag.Parsed() {
		flag.Parse()
	}
	return testing.Short()
}

// Long skips a test in a short run. Why completes the sentence "left out of a short run: the test …".
func Long(tb testing.TB, why string) {
	tb.Helper()
	if Short() {
		tb.Skipf("left out of a short run: the test %s", why)
	}
}

// Rounds is how often a random run is repeated: few in a short run, which the test logs, and else all.
func Rounds(tb testing.TB, all, few int) int {
	tb.Helper()
	if !Short() || few >= all {
		return all
	}
	tb.Logf("a short run: %d rounds of %d", few, all)
	return few
}
