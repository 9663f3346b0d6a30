// Package chaos kills parts of a running system under load and counts what became
// of every task.
//
// Owns: the load (producers and workers as users write them, on the Go SDK), the
// ledger of what they saw, and the comparison of both with what the engine says.
//
// Never does: assert how long a takeover takes; it logs it. Deadlines in here are
// bounds for a broken run on a loaded machine.
//
// On failure: the test prints the first offences, and the logs of all processes.
package chaos
