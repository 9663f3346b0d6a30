package testkit

import (
	"testing"
	"time"
)

// Polls start close together, because most conditions hold at once, and thin out,
// because a condition may be a query to a server.
const (
	pollDelayMin = time.Millisecond
	pollDelayMax = 25 * time.Millisecond
)

// Eventually calls cond until it returns nil, and fails the test with its last
// error if that has not happened within the given time. The time is a bound for a
// broken run, not an expectation: give it seconds. It must be called from the
// test's own goroutine, and works inside a synctest bubble.
func Eventually(tb testing.TB, within time.Duration, cond func() error) {
	tb.Helper()
	deadline := time.Now().Add(within)
	delay := time.NewTimer(0)
	defer delay.Stop()
	for wait := pollDelayMin; ; wait = min(2*wait, pollDelayMax) {
		<-delay.C
		err := cond()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %v", within, err)
		}
		delay.Reset(wait)
	}
}
