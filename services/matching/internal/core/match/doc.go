// Package match is one matching shard as a pure turn: Step takes everything that came in
// and returns everything that is to go out.
//
// Owns: which domains and tasklists the shard has, what operators have set, how an owner starts and leaves, and the order of a turn. All else
// is rooms of their own, which it wires: dealing is what becomes of a trigger. Never does: I/O, waiting, reading a clock or a random
// source. It never decides who gets a task: it asks history with a grab, and history decides. It keeps nothing that cannot be lost.
//
// On failure:
//   - A partition is silent: its grabs are few, its triggers set aside, its polls go on
//     waiting for others. Its batches are repeated until they are answered.
//   - The tables of a domain do not answer: polls of unlimited types meet triggers
//     directly; all other triggers are released, and history is asked for them when the
//     tables are back. No other domain notices.
//   - A newer owner has fenced: everything stops.
//
// # The turn
//
// Its order is that of the fields of Inputs, then matching, then what goes out. So what a turn
// frees is counted before the same turn books. See contracts/decisions, number 12.
//
// It looks at a part of the tasklists only that may have something to give: what is left makes the next turn due at once, and
// other domains are served in between. Tasklists that wait for a slot of a limit stand in line, and one that comes free
// is tried for the first of them.
package match
