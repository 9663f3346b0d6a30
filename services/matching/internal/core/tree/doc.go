// Package tree is the partitions of a tasklist as a tree. Only polls travel in it, through the frontend that each came from: up, where they find
// nothing, and down, where they are wanted. See contracts/decisions, number 30.
//
// Owns: what a partition knows of those below it, which polls travel and where to, what its parent was
// last sent, and what frontends were last sent of the triggers that wait. Never does: end a poll, match a trigger, or call a table. On
// failure: a report that is lost is repeated a second later; a poll that no frontend takes is
// answered empty.
package tree
