// Package bench measures Yardmaster from outside, as a client sees it: everything
// included, load generator too.
//
// Owns: the workloads, what is counted and timed, and the report. It uses the Go
// SDK's low-level calls and nothing internal, so a cluster elsewhere can be
// measured as well as the embedded stack.
//
// Never does: believe a number without a proof. Every accepted task must be
// completed, with an accepted verdict, exactly once, or the run is an error.
//
// On failure: a run in which nothing moves for a while is ended with what was seen.
//
// The workloads:
//
//	W1  drain: tasks of 256 B in requests of 100, 10 types, 3 priorities, 8
//	    producers; 16 long polls of 100; completed in batches. First submit to last
//	    accepted completion.
//	W2  64 producers that submit one task per request; workers as in W1.
//	W3  an open loop of 500 tasks/s: from the submit call to the handler's start.
//	W9  reads: 1,000,000 tasks are sent through as in W1. After 15 s, 1,000 tasks/s as in
//	    W3 for 10 s, and the same again beside 5,000 gets/s, an open loop too, of
//	    tasks of the million at random: from when a get was due to its answer. 2 s of
//	    gets alone come before.
//	W10 neighbours: 500 tasks/s as in W3 and 500 gets/s of finished ones, for 20 s,
//	    alone and beside another domain with 1,000 open waits and 5,000 polls/s of
//	    empty tasklists, 5 s each; from when a get was due, or the call of submit, to
//	    the answer.
package bench
