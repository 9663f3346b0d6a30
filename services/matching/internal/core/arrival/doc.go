// Package arrival is the triggers of a turn on their way to a poll or to a table.
//
// Owns: the chunks into which messages of the hint stream are cut, by groups where these have columns of their own, and which part of each message
// is taken care of. Never does: match a trigger, store it, or know which polls wait. On failure: a message of which a part could not be
// taken care of comes again as a whole.
package arrival
