// Package due decides which waiting tasks fire, in which order, which have been fired already, and which are void.
//
// Owns: the due table of one timer partition, an index of every waiting task (about 75 bytes each; the records stay in the store), the meaning of the
// firing cursor and of the store's fences, what a cancel does, and what time it is for firing. It always pops from the beginning of time, so a task
// written late is late and not lost.
//
// Never does: I/O, or reading a clock; now and the cursor come in as values. It is not safe for concurrent use: one goroutine owns a Table.
//
// On failure: a broken invariant panics, since going on would fire a task twice or never. Strange input (an unknown id, a message seen before) is ignored.
//
// How a task fires exactly once: tasks are ordered by Key. A round takes all tasks due by an instant T among the messages up to a sequence S, in that
// order, cut into chunks; each chunk is stored in one atomic batch with the Cursor that covers it. A task that is written during a round has a higher
// sequence than S and waits for the next one, so "key up to Last" never covers what was not there.
//
// When T goes back, because the last owner's clock was ahead: what the round and the base cover is set aside as parts, each "up to a key, among messages
// up to a sequence", and the next round begins at the clock's T. A part, like a round, never grows, so it covers nothing that is written later. It goes
// when a base covers it, which is when its instants have come.
//
// A fence voids what replaced history owners write behind it. Which message is void depends on the fences before it alone, and those stay in the store as
// long as the message does: so every owner finds the same messages void.
package due
