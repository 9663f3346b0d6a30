// Package limit is what one shard knows of the limits of its domains: how many attempts use slots, what the tables count for the shard, who
// waits for a slot, and which triggers were read ahead of one.
//
// Owns: slots, rates, limits that count per group, pauses, the line of tasklists of each limit, the triggers read ahead, and how full each
// limit was. Never does: call the tables, ask history, or give a trigger to a poll: it says what a call is to say (Call), which attempts
// are to be counted (Audit), and asks a tasklist to do the rest (Tasks). On failure: all of it may be lost; it is counted again.
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
// be used again without asking, as long as no one else waits for it: that is asked every LeaseFor/2 while
// slots are in use. A shard asks for some more than it needs; then new triggers meet polls without
// passing the table. Those that are not in use are given back with the next call, ReportAfter later at most,
// or at once where others wait. Of a chunk that a limit cut the rest is read ahead, for the slots to
// come. It goes back whenever the tables are asked for triggers of that limit again, so the order of
// a column is that of its table.
package limit
