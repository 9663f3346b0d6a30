// Package tablecall is the triggering tables of domains, and the calls to them.
//
// Owns: whether the tables of a domain are open, what waits to be stored and to be forgotten, what the tables contain as far as known, which
// tasklists are to be asked for, what one call stores, forgets and takes, and for which polls; the bounds of a call and of a turn.
// Never does: make a call, pair what it took with polls, or know how limits stand: it names them (limit.Call). On failure: a call that was not made
// has taken nothing, and what it was to store arrives again. If tables do not answer, or have lost their memory, they are opened again and
// history sends all triggers of the domain.
package tablecall
