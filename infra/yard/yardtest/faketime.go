package yardtest

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats-server/v2/server/ats"

	"github.com/yardmaster-io/yardmaster/contracts/pace"
)

// slower is how many times less often an engine in fake time looks after itself, and its clients: each such moment costs real time. A quarter of a second
// becomes more than an hour.
const slower = 20_000

// FakeTime runs a test with an engine of its own, both in a bubble of testing/synctest. There time is fake: it begins at
// midnight UTC of 2000-01-01, and jumps when every goroutine of the bubble waits for it. So a test that
// sleeps for an hour, waits for a task that is delayed by one, or for a retry, a heartbeat timeout, a lease or an expiry,
// goes on at once:
//
//	yardtest.FakeTime(t, func(t *testing.T, e *yardtest.Engine) {
//		id, _ := SendEmail.Submit(ctx, e.Client, email, yard.WithTask(func(t *yard.Task) { t.Delay = time.Hour }))
//		...
//	})
//
// Time costs what happens in it: an hour with three tasks takes about 60 ms, and a week in which a schedule has a run each hour 3 s. All times
// are as in real time: of tasks, of the end of a pause, and of the moment when a worker counts as silent. The engine and its clients are one process, so
// they check each other 20,000 times less often (package pace).
//
// The rules of a bubble hold here: goroutines of the test must end before it does, its channels and timers stay in it, and the one that
// waits for anything but time and the bubble's own goroutines, such as a socket, stops the time. The engine
// has no socket: its Client and the clients of Connect reach it through memory. The test must not be parallel, nor run subtests.
func FakeTime(t *testing.T, test func(t *testing.T, e *Engine)) {
	t.Helper()
	t.Setenv("YARDTEST_FAKE_TIME", "1") // ends a parallel test: nats.go keeps used timers for all of the process
	ats.Register()                      // the server's clock for the age of its caches, one for all of the process
	defer ats.Unregister()
	forgetTimers()
	defer forgetTimers()
	defer pace.Slow(slower)()
	synctest.Test(t, func(t *testing.T) { test(t, start(t, &host{dir: t.TempDir(), faked: true})) })
}

// forgetTimers empties the pools of the process. A timer that was made in a bubble must not be used outside, nor in another
// one, and nats.go has a pool of used ones. A pool is empty after two collections (sync.Pool).
func forgetTimers() {
	runtime.GC()
	runtime.GC()
}
