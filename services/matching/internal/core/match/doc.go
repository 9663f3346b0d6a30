// Package match is one matching shard as a pure turn: Step takes everything that came in
// and returns everything that is to go out.
//
// Owns: which trigger goes to which poll, the grabs that history has not decided, the
// slots that the shard's attempts hold, what is to be given back, and what is known of the
// shard's tables. Never does: I/O, waiting, reading a clock or a random source. It never
// decides who gets a task: it asks history with a grab, and what history says is so. It keeps
// nothing that cannot be lost.
//
// On failure:
//   - A partition is silent: its grabs are few, its triggers set aside, its polls go on
//     waiting for others. Its batches are repeated until they are answered.
//   - The tables of a domain do not answer: polls of unlimited types meet triggers
//     directly; all other triggers are let go of, and history is asked for them when the
//     tables are back. No other domain notices.
//   - A newer owner has fenced: everything stops.
//
// # The turn
//
// Its order is that of the fields of Inputs, then matching, then what goes out. So what a turn
// frees is counted before the same turn books. See contracts/decisions, number 12.
//
// It looks at a part of the tasklists only that may have something to give: what is left makes the next turn due at once, and
// other domains are served in between. Tasklists that wait for a slot of a limit stand in line, and one that comes free
// is tried for the first of them.
//
// # When slots are counted
//
// A shard may never tell the tables fewer slots than its attempts use. So it says nothing about
// a limit before each partition has reported which attempts of the type run, booked or not, and each has
// been asked behind this owner's fence, which nothing of an older owner can follow. Until
// then triggers of that type wait, and the entry in the tables stays as it is: it may be
// too high, never too low. A partition without an owner therefore keeps limited types of a new owner
// waiting, and unlimited ones never.
//
// Attempts that ended while the answers were on their way are found by asking again a second later. The same is done for a limit that
// comes to cover others, which is a new one under its old reference, and whenever the tables have lost their memory: an owner
// that was overtaken learns of it then, before it speaks for its shard.
//
// # When slots are used again
//
// The tables never count less for the shard than what is in use, so a slot that has become free may
// be used again without asking, as long as no one else waits for it: that is asked every leaseFor/2 while
// slots are in use. A shard asks for some more than it needs; then new triggers meet polls without
// passing the table. Those that are not in use are given back with the next call, tellAfter later at most,
// or at once where others wait. Of a chunk that a limit cut the rest is read ahead, for the slots to
// come. It goes back whenever the tables are asked for triggers of that limit again, so the order of
// a column is that of its table.
//
// # When a partition is silent
//
// If a verdict is late by silentAfter, and it has said nothing for as long: a partition that is
// slow, but answers, is not silent.
package match
