// Package natstimer is the timer's adapter for NATS: the timer store and the
// firing cursor as streams.
//
// Owns: which stream, subject and header stands for what. Never does: retry, or
// decide anything. On failure: errors wrap the sentinels of package firing where
// one applies.
package natstimer
