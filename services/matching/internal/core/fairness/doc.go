// Package fairness decides in which order the triggers of groups are taken that share a column.
//
// Owns: the virtual time of each shared column, the next rank of each of its groups, and the chunks in which triggers of
// many groups are stored. Never does: store triggers, or know which polls wait. On failure: nothing can fail; a rank that is lost costs its
// group a turn.
package fairness
