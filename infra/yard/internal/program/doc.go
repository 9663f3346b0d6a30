// Package program runs an attempt of a task as a process of its own: the payload is its input,
// what it writes is the result, and its exit code decides.
//
// Owns: the process and all that it starts, from its begin to its end; what an exit code means; the
// bounds of what it may write. Never does: talk to the engine. Polls, heartbeats and outcomes
// are the SDK's.
//
// On failure: an error that the SDK reports. A program that is to stop, because its time is over, its
// task was cancelled, or the worker stops, gets SIGTERM, and after a while SIGKILL. Neither it nor
// what it left in its process group outlives the attempt, or the worker, however that ends: a guard, a process of its own
// for each attempt, kills the group when the worker is gone.
package program
