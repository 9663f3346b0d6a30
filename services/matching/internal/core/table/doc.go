// Package table holds the rules of the triggering table: which ready task comes
// next, which limits a grant must fit into, and when memory that was lost may be
// trusted again.
//
// Owns: the order (priorities 1 to 5; inside one, the column with the oldest head
// first), what a full limit sets aside, the bookings of limited types, and the
// epoch that tells a whole table from one that lost its memory. Table is these
// rules over plain memory; the Redis scripts follow them, and one conformance suite
// runs on both. Index is what the owner of a shard remembers of its tables.
//
// Never does: I/O, or reading a clock or a random source; both come in as values.
// It never decides who gets a task: triggers are hints, history's log decides.
//
// On failure: a call for a domain whose memory is lost is refused with ErrEpochLost
// and changes nothing.
//
// # Bookings
//
// A booking names one attempt (task and version) in the limit of its type, and
// expires by itself. A trigger whose booking exists already is a double: it is
// dropped, since two grabs that share one booking would free it when one of them
// is refused. A booking that was in use stays at least as long as it was granted:
// nothing but a release ever shortens it.
//
// # Epochs
//
// An epoch is one life of a shard's table of one domain. It begins open: triggers
// may be stored and unlimited types handed out. It becomes whole when every booking
// that history knows has been restored; only then are limited types handed out.
package table
