// Package question is the questions of a shard to history that are not answered.
//
// Owns: what a shard asks history, which questions wait and which are under way, and when one may be asked again. Of the same triggers
// one question is under way at a time. Never does: act on an answer: it returns what the answer is about. On failure: a question without an
// answer is asked again.
package question
