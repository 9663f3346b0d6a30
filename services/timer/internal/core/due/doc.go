// Package due decides which waiting tasks fire, in which order, and which have
// been fired already.
//
// Owns: the due table of one timer partition, an index of every waiting task
// (about 75 bytes each; the records stay in the store), and the meaning of the
// firing cursor. It always pops from the beginning of time, so a task written
// late is late and not lost.
//
// Never does: I/O, or reading a clock; now and the cursor come in as values. It
// is not safe for concurrent use: one goroutine owns a Table.
//
// On failure: a broken invariant panics, since going on would fire a task twice
// or never. Strange input (an unknown id, a message seen before) is ignored.
//
// How a task fires exactly once: tasks are ordered by Key. A round takes all
// tasks due by an instant T among the messages up to a sequence S, in that order,
// cut into chunks; each chunk is stored in one atomic batch with the Cursor that
// covers it. What is written during a round has a higher sequence than S and
// waits for the next one, so "key up to Last" never covers what was not there.
package due
