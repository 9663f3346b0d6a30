// Package waiting is the polls of a shard until they are answered.
//
// Owns: which polls may wait, when a poll is answered and with which tasks, the answers that may turn out to be undelivered, and the workers that
// polled recently. Never does: find a trigger for a poll, ask history or the tables, or choose another partition for a poll: it asks the
// tasklist of the poll (Tasklist). On failure: a frontend sends a lost poll again; an attempt whose answer was not delivered is handed back.
package waiting
