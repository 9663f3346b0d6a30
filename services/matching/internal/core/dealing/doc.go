// Package dealing decides what becomes of a trigger: a poll gets it, the tables store it, or it is released.
//
// Owns: the order in which triggers of a turn meet polls, which of them may pass the tables, and what follows when a grab, or a request to stop
// a task, has ended: its slot, its poll, and its place in the tables. Never does: choose a tasklist for a call to the tables, answer a
// poll, or count slots: it asks the rooms that own polls, grabs, tables and limits (Rooms). On failure: a trigger that is lost is sent again by history.
package dealing
