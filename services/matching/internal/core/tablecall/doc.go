// Package tablecall makes the calls to the triggering tables of a domain.
//
// Owns: which tasklists are to be asked for, what one call stores, forgets and takes, and for which polls; the bounds of a call and of a turn.
// Never does: make a call, match what it took, or know how limits stand: it names them (limit.Call). On failure: a call that was not made has
// taken nothing, and what it was to store arrives again.
package tablecall
