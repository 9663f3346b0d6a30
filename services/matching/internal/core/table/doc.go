// Package table holds the rules of the triggering table: which ready task comes
// next, which limits a grant must fit into, and how the slots of a limit are shared out
// among the shards.
//
// Owns: the order (priorities 1 to 5; inside one, the column with the oldest head
// first; inside a column, by age or by rank), what a full limit sets aside, each shard's entry in a limit, the line of shards that
// wait for slots, and the epoch that tells a table from one that lost its memory. Table is
// these rules over plain memory; the Redis scripts follow them, and one conformance suite
// runs on both. Index is what the owner of a shard remembers of its tables.
//
// Never does: I/O, or reading a clock or a random source; both come in as values.
// It never decides who gets a task: triggers are hints, history's log decides. It does not know
// attempts: two triggers of one task are two to it.
//
// On failure: a call for a table whose memory is lost answers Lost, one that is older than
// what was carried out answers Overtaken; both change nothing.
//
// # Ranks
//
// Where groups share a column, its chunks stand in it by their ranks, which are virtual times (start-time fair queueing: Goyal, Vin and
// Cheng, SIGCOMM 1996), not by their ages. The caller computes these (core/match). A chunk may hold triggers of many groups, so a hundred thousand
// groups cost what one does. Of its head a column gives what comes before the next chunk.
//
// # Slots
//
// A limit has one entry per shard: how many slots its attempts use, which a call sets (Held), and
// to which it adds what it grants. A trigger is granted only if every limit of its path has a
// free slot. A limit grants nothing until each shard has its entry: the sum is not known. An
// entry expires as a backstop, then what it holds counts as free, and the entry stays.
//
// # Rates
//
// A rate has no entries: one number, the theoretical arrival time of the next start (GCRA), which is taken
// with the slots of a path, all or none. A trigger may use several starts. It waits for them in its turn: what comes after it on that
// rate does not overtake it. While it does, shards stand in a line of the rate, in which who was served goes last; a rate
// whose triggers all use one start has none. One that costs more than the burst waits for a whole burst, and what it costs beyond
// is paid off before anything else starts.
//
// # The line
//
// A shard that waits (Stance.Wait) stands in the limit's line with the number of slots that
// it lacked. Free slots are kept for those before it: of a more urgent priority, or of the same
// that wait longer. A shard that is granted something and still lacks more goes behind those of
// its priority. One that lacks nothing, or has not shown itself for LineStale, leaves.
//
// # Epochs
//
// An epoch is one life of a shard's table of one domain. An entry of another life
// is refused, so a shard learns that its triggers are gone.
package table
