// Package audit compares what the outside of the system has seen with what the
// archive holds.
//
// Owns: the ledger's types (every task asked for, every grant a worker got, every
// outcome and cancel that was sent, and their verdicts) and the rules that both
// accounts must satisfy together. Check is a pure function.
//
// Never does: use the engine's code paths. It knows the stored messages and the
// meaning of a task's states; it asks no service.
//
// On failure: each violation carries the whole history of its task, from the
// ledger and from every archived copy.
package audit
