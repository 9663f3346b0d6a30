// Package yard is the Go SDK: it hands tasks to Yardmaster, waits for their
// results, and runs workers.
//
// Owns: encoding of payloads, retries of calls that are safe to repeat, and the
// whole life of a worker: polling, running, heartbeats, outcomes, drain. Never
// does: decide about a task; the engine does, and its verdict is final. On
// failure: every call returns a *fault.Error, matched by code:
//
//	if errors.Is(err, yard.ErrNotFound) { … }
//
// Where the caller's context ended, the error matches the context's error too.
// What it returns are types of its own. Client.Wire has the messages of the wire
// (package yardv1), for loops in place of a Worker.
//
// # The life of a worker
//
// A worker has a number of slots, see WithConcurrency. A poll reserves the free
// slots and asks for no more tasks than that, so a granted task never waits in
// a buffer while its time runs. Of several tasklists (WithTasklists) each is polled on
// its own, and they take turns where slots are short. Each task runs in a goroutine of its own with a
// context that ends at the attempt's deadline, when the task is cancelled
// (cause ErrCancelled), when the attempt was given to somebody else (cause
// ErrLostAttempt), or when the worker has to stop (cause ErrStopping).
//
// While handlers run, the worker beats for all of them together, at a third of
// their heartbeat timeout, or every 10 s where there is none: that is how it
// learns of cancels. A cancel is also announced at once to all workers of the domain, and
// who runs the task beats for it. When a handler returns, its outcome joins the next request:
// while one request is under way the next one gathers, so a busy worker sends
// hundreds of outcomes at once and an idle one sends each at once. Outcomes
// whose fate is unknown are repeated until a minute after the attempt's deadline,
// since attempts do not end while the engine's log stands still; the engine
// answers repeats alike.
//
// When the context of Run ends, the worker stops polling and takes back its
// interest in answers that are still to come, so that the engine hands those
// tasks to others at once. What had arrived but not begun is handed back, which
// costs no attempt. Running handlers get WithDrainTimeout to finish; then their
// contexts end, and those that return an error are handed back too. All outcomes
// are sent before Run returns; what could not be finished is in its error.
package yard
