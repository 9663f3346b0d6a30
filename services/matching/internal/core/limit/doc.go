// Package limit is what one shard knows of the limits of its domains: how many attempts use slots, what the tables count for the shard, who
// waits for a slot, and which triggers were read ahead of one.
//
// Owns: slots, rates, limits that count per group, pauses, the line of tasklists of each limit, the triggers read ahead, and how full each
// limit was. Never does: call the tables, ask history, or give a trigger to a poll: it says what a call is to say (Call), which attempts
// are to be counted (Count), and asks a tasklist to do the rest (Tasks). On failure: all of it may be lost; it is counted again.
package limit
