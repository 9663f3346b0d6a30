// Package historysim is the owner of a history partition as a hand-driven machine, for
// simulations: the real replica, and a shell around it that does what the real one does,
// one operation at a time, on a host that decides when and how each operation ends.
//
// Owns: the takeover, the readers' cursors, the repetition of what was not stored, the order
// of effects. Never does: I/O, a goroutine, a clock, randomness: Host has all of them.
// On failure: an owner that was overtaken, or that refuses a store which ends before its
// checkpoint, ends and says why in Ended.
package historysim
