// Package partition is the owner of one history partition: one goroutine that
// applies the partition's log, in order, to the tasks in memory, and carries
// out what follows.
//
// Owns: the tasks in the window, leases and short waits, the order of effects,
// the checkpoint and the takeover by replay.
// Never does: decide about a task on its own; even a lease that runs out is a
// record in the log first. So a second owner, alive by mistake, decides the
// same, and does no harm (I3).
// On failure: a write that fails is repeated until it is stored; a checkpoint
// that another owner has overwritten ends Run with ErrTakenOver.
//
// Order of effects. Records are applied in batches: all that is queued, then
// one flush. A flush publishes releases and triggers, then verdicts; archive and timer
// writes are queued to writers of their own, and a task counts as done, which
// lets the ack level pass it, only when its write is stored.
package partition
