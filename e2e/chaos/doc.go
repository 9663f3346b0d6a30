// Package chaos kills and pauses parts of a running system under load and counts
// what became of every task.
//
// Owns: five loads. The first are producers and workers as users write them, on the
// Go SDK, whose ledger is compared with what the engine says; each fault of it is
// one test. The second (tests named UnderLoad, `task chaos`) is a traffic of all
// kinds of tasks through random faults, whose ledger package audit compares with
// what JetStream holds. The third (medley) uses what operators have: policies of full limits, stops of groups, changing partitions.
// The fourth (life) has all that may become of a task at a time: order keys, unique keys, updates, cancels, redrives.
// The fifth (firing) are tasks that wait, due at a rate; the log of history shows how often each fired.
//
// One test has a sealed cluster always; with YARD_SEALED=1 in the environment all have.
//
// Never does: assert how long a takeover takes; it logs it. Deadlines in here are
// bounds for a broken run on a loaded machine.
//
// On failure: the test prints the first offences, and the logs of all processes.
package chaos
