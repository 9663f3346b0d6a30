// Package yard is the Go SDK: it submits tasks to Yardmaster, waits for their
// results, and runs workers.
//
// Owns: encoding of payloads, retries of calls that are safe to repeat, and the
// whole life of a worker: polling, running, heartbeats, outcomes, drain. Never
// does: decide about a task; the engine does, and its verdict is final. On
// failure: every call returns a *fault.Error, matched by code:
//
//	if errors.Is(err, yard.ErrNotFound) { … }
//
// If the caller's context ended, the error matches the context's error too.
// Results have types of this package. Client.Wire has the wire messages
// (package yardv1), for programs that do not use Worker.
//
// # The life of a worker
//
// A worker has a number of slots, see WithConcurrency. A poll reserves the free
// slots and asks for no more tasks than that, so a granted task never waits in
// a buffer while its time runs. Several tasklists (WithTasklists) have a poll each,
// and share the slots by weight (WithWeights). Each task runs in a goroutine of its own with a
// context that ends at the attempt's deadline, when the task is cancelled
// (cause ErrCancelled), when the task was given to another attempt (cause
// ErrLostAttempt), or when the worker must stop (cause ErrStopping).
//
// While handlers run, the worker sends heartbeats for all of them together, at a
// third of their heartbeat timeout, or every 10 s if they have none: that is how it
// learns of cancels. A cancel is also announced at once to all workers of the domain;
// the one that runs the task then sends a heartbeat. When a handler returns, its
// outcome joins the next request: while one request is under way, the next one
// gathers. So a busy worker sends hundreds of outcomes in one request, and an idle
// worker sends each at once. If no verdict comes, outcomes are repeated until a minute
// after the attempt's deadline, since attempts do not end while the engine's log is
// blocked; the engine gives repeats the same answer.
//
// When the context of Run ends, the worker stops polling and unsubscribes from
// answers that are still to come, so that the engine gives those tasks to others at
// once. Tasks that arrived but did not start are handed back, without a failure.
// Running handlers get WithDrainTimeout to finish; then their contexts end, and the
// tasks of those that return an error are handed back too. All outcomes are sent
// before Run returns; its error lists what could not be finished.
package yard
