// Package shard runs one matching shard: the loop around core/match, which decides.
//
// Owns: the mailbox, the order in which effects are carried out, and what runs beside the loop: calls to the tables, one batch at a time for each group of
// domains that fail together, and questions to history, one at a time for each partition. One goroutine runs the turns; everything else sends it messages,
// which it takes in batches. There is no linger timer, and neither goroutine nor timer per task.
//
// Never does: decide anything. Messages are given to the core as they are, what the core asks for is done, in the order of match.Effects. It never waits
// for tables or history in a turn.
//
// On failure:
//   - Tables that do not answer within callTimeout fail the calls under way to their
//     group. Other groups do not notice.
//   - A partition that does not answer fails the question, not sooner than askPause, so that
//     asking again is no storm.
//   - An answer that could not be sent is one that was not delivered.
//   - A newer owner: Run ends with ErrOvertaken, and sends nothing more.
//   - A drain that the core does not finish within drainTimeout is cut short.
package shard
