package testkit

import (
	"os"
	"testing"
)

// testsEnv with the value testsAll asks for all tests: those that are slow run too, and a program that a test needs
// and the machine lacks is a failure.
const testsEnv, testsAll = "YARD_TESTS", "all"

// Quick reports whether the tests run as `go test work`, which a person waits for, and not with YARD_TESTS=all.
//
// Quick tests prove what one process can prove soon. They leave out:
//   - processes of our own, which they neither build nor start, and other programs but a single redis-server;
//   - clusters of NATS or of Redis (one NATS server inside the test's process is none);
//   - whatever takes more than about a second by itself;
//   - most rounds of random runs: a few seeds show whether a change is plainly wrong.
//
// Nothing is left out in silence: a test says so by Slow, a count by Rounds.
func Quick() bool { return os.Getenv(testsEnv) != testsAll }

// Slow skips a test in a quick run. Why completes the sentence "the test …".
func Slow(tb testing.TB, why string) {
	tb.Helper()
	if Quick() {
		tb.Skipf("left out, %s=%s runs it: the test %s", testsEnv, testsAll, why)
	}
}

// Rounds is how often a random run is repeated: few times in a quick run, which the test logs.
func Rounds(tb testing.TB, all, few int) int {
	tb.Helper()
	if !Quick() || few >= all {
		return all
	}
	tb.Logf("a quick run: %d rounds of %d", few, all)
	return few
}
