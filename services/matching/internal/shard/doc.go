// Package shard pairs ready tasks with waiting polls: the loop that owns one
// matching shard.
//
// Owns: the waiting polls and their deadlines, which triggers go to which poll, the
// bookings made for them until history has decided, and the index of its tables.
// One goroutine runs a shard; everything else sends it messages, which it takes in
// batches: take all there is, act, send. There is no linger timer and nothing is
// done per task that can be done per batch.
//
// Never does: decide who gets a task. It asks history with a grab, and what history
// says is so. It keeps nothing that cannot be lost: triggers are sent again,
// bookings restored, polls repeated.
//
// On failure:
//   - Tables unreachable: polls wait, hints go back to their stream, and triggers of
//     unlimited types still meet waiting polls. It tries again every RetryEvery.
//   - Tables empty: see domain.go; unlimited types go on at once, limited ones when
//     history has told their bookings.
//   - No verdict: the same grab is sent again with the same nonce; after GrabTimeout
//     the attempts are handed back and their bookings left to lapse.
//   - Two owners at once: each grab has one winner, and each booking is counted once.
//
// # The life of a trigger
//
//	hint ──► poll waits, table empty, type unlimited ──────────────► grab
//	   └───► table (Put) ──► poll ──► Pop books a slot ────────────► grab
//	grab ──► granted ──► booking extended to the deadline ─► answer ─► heard: done
//	   │                             └─ booking gone ─► hand back   └─ unheard: hand back
//	   └───► refused: booking released, the poll waits on
package shard
