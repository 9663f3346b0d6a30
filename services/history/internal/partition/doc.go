// Package partition is the shell of one history partition: it reads the log, feeds core/replica, and carries out what
// that says.
//
// Owns: the readers, the writers, the takeover's order, the saving of the checkpoint, and who waits for what.
// Never does: decide. The outcome of a task, what is still needed, whether the lease holds, when to save, to purge or
// to trigger again: the replica says it.
// On failure: a write that fails is repeated until it is stored; one that can never be stored goes to the quarantine,
// and the rest goes on; but for the owner's own events, which are proposed again. A checkpoint that another owner has
// written ends Run with ErrTakenOver; a record that this version cannot read ends it with ErrUnreadable.
//
// Order of effects. A turn steps through what is queued, up to the message that has the thousandth task, and then
// flushes: writes are begun, hints are published, then answers. Nothing but the checkpoint itself leaves while the lease
// does not hold.
package partition
