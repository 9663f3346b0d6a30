// Package bench measures Yardmaster from outside, as a client sees it: everything
// included, load generator too.
//
// Owns: the workloads, what is counted and timed, and the report. It uses the Go
// SDK's low-level calls, and how long the history streams are, so a cluster elsewhere
// can be measured as well as the embedded stack.
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
//	W2  64 producers that submit one task per request, as programs of their own do; workers as in W1.
//	W2s the same tasks from 64 goroutines of one program that call the SDK's Submit, which gathers them.
//	W3  an open loop of 500 tasks/s: from the submit call to the handler's start.
//	W8  1,000 domains in turn, 64 producers that submit one task per request; each
//	    domain has a long poll of its own, on 2 connections for all.
//	W8s the same with 512 producers. Workers begin when all tasks are accepted, and
//	    what is measured ends then: submits per second.
//	W9  reads: 1,000,000 tasks are sent through as in W1. After 15 s, 1,000 tasks/s as in
//	    W3 for 10 s, and the same again beside 5,000 gets/s, an open loop too, of
//	    tasks of the million at random: from when a get was due to its answer. 2 s of
//	    gets alone come before.
//	W10 neighbours: 500 tasks/s as in W3 and 500 gets/s of finished ones, for 20 s,
//	    alone and beside another domain with 1,000 open waits and 5,000 polls/s of
//	    empty tasklists, 5 s each; from when a get was due, or the call of submit, to
//	    the answer.
//
// Tasks per sync are a run's tasks by the messages that were appended to the history
// streams meanwhile: with a sync before every answer the server syncs each stored
// message, one after the other, so this decides on a disk where a sync is slow. All
// messages count: submits, grabs, outcomes, and what history and the timer add.
//
// Several settings of sync take turns, run by run, and a ratio is the median of those of
// neighbouring runs, since the machine is not the same an hour later.
package bench
