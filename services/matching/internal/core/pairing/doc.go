// Package pairing is the polls that wait for tasks, and which of them a task goes to.
//
// Owns: the polls of a shard that are not answered, the line of each tasklist (first come, first served, by the types that polls accept),
// how many tasks fit into an answer, and how many polls a domain may have. Never does: grab a task, answer a poll, or know what the tables
// hold. On failure: nothing can fail; polls that are lost are sent again by their frontends.
package pairing
