// Package due decides which waiting tasks fire, in which order, which have been fired already, and which are void.
//
// Owns: the due table of one timer partition, an index of the tasks that are due soon (about 75 bytes each) and of where the others lie (10 bytes; package
// far), which of them are near, the meaning of the firing cursor, of the store's fences and of early messages, and what time it is for firing. It always
// pops from the beginning of time, so a task written late is late and not lost.
//
// Never does: I/O, or reading a clock; now and the cursor come in as values. It is not safe for concurrent use: one goroutine owns a Table.
//
// On failure: a broken invariant panics, since going on would fire a task twice or never. Strange input (an unknown id, a message seen before) is ignored.
//
// How a task fires exactly once: tasks are ordered by Key. A round takes all tasks due by an instant T among the messages up to a sequence S, in that
// order, cut into chunks; each chunk is stored in one atomic batch with the Cursor that covers it. A task that is written during a round has a higher
// sequence than S and waits for the next one, so "key up to Last" never covers what was not there.
//
// Tasks are near or far by their buckets. T is never later than the last bucket that is near, so a cursor speaks of no task that was not read. A bucket comes
// near as a takeover reads the store: in order, and what was fired is forgotten at its end. A far task that fires early comes near alone.
//
// When T goes back, because the last owner's clock was ahead: what the round and the base cover is set aside as parts, each "up to a key, among messages
// up to a sequence", and the next round begins at the clock's T. A part, like a round, never grows, so it covers nothing that is written later. It goes
// when a base covers it, which is when its instants have come.
//
// How domains fire in turn: a cursor has a line, which is a base and a round with its last key, for all domains, and lines for those that are apart. Each
// task belongs to the line of its domain, and only that says whether the task was fired. A domain is set apart with a copy of the shared line, which covers
// the same of its tasks. It joins again between its rounds, when the shared line covers all that its own covers and none of its tasks that wait. So both
// change the cursor and not what was fired, and need no record of their own: they are stored with the next chunk, or done again by the next owner.
//
// How a stay fires before it is due: an early message in the store names it. K1 is the key of its record. K2 is the key of the early message: the time when
// that was stored, its sequence, and the place in it. The stay fires under K2. K2 is before K1, since an early message for a stay that is due counts for
// nothing, and a round that began with the early message has K2 if it has K1. So a cursor that covers K1 or K2 says that the stay was fired:
//
//   - An owner that knows the early message fires K2 before its cursor can cover K1. A round that began without the early message and has K1 is the
//     exception, also if another owner goes on with it: the stay stays under K1, and that round cannot cover K2. If the round is cut or set aside, the
//     stay goes under K2.
//   - An owner that does not know the early message may fire K1. Its rounds end before the sequence of K2 and do not cover that.
//   - One owner fires K1 and another one K2: each names the cursor that it builds upon, so one of the two is stored. The owner that loads it finds the stay fired.
//
// All owners read the same messages in the same order, so they agree on K2: it is that of the first early message.
//
// How an owner fires before it has loaded all: it loads the near buckets whole, and those of the early messages from Cursor.EarlyFrom on. All messages about
// a stay lie in its bucket: the copies of its record, which have one due time, and its early messages. So with
// the fences, which are loaded too, all is known of the stays of a loaded bucket. Of a stay in another bucket no cursor covers K1, since it is not near. It has no K2 that is not covered already: the
// early message would lie before EarlyFrom, and then the cursor covers K1 or K2; or it lies behind, and then the bucket is loaded. An early message that
// comes meanwhile waits until all is loaded, and rounds end before its sequence.
//
// A fence voids what replaced history owners write behind it. Which message is void depends on the fences before it alone, and those stay in the store as
// long as the message does: so every owner finds the same messages void.
package due
