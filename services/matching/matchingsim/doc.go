// Package matchingsim is the owner of a matching shard as a hand-driven machine, and the
// tables that owners share, for simulations: the real core, and the real rules of the tables.
//
// Owns: when an owner takes a turn, and what each turn takes in. Never does: I/O, a goroutine,
// a clock, randomness: Host has all of them.
// On failure: an owner that a newer one has fenced, or that has drained, ends and says why in
// Ended.
package matchingsim
