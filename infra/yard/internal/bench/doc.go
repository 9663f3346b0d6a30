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
//	W1s the same tasks; workers begin when all are accepted, and what is measured ends then: submits per second.
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
//	W11 fairness: 10 tasks/s of a small group, from the submit call to the handler's start: alone,
//	    beside 20,000 tasks of another group, and beside as many of another domain. A domain has one worker
//	    of 16 handlers that take 10 ms each, so the flood waits for 12.5 s or more. Then 5,000 tasks
//	    of each of four groups with the weights 1, 2, 4 and 0, all ready before the first one
//	    starts: what the groups have of the starts until one of them is done.
//	W12 redrive: 100,000 tasks die first. Then tasks as in W3, 1,000/s for 50 s, alone and while all dead letters come
//	    back at 2,000/s and are done.
//
// Curves (yard bench curves) are W1 with one setting at several values, a fresh system for each: levels of limits, saturation of a
// limit, types, groups, order keys, partitions of the tasklist, and polls that wait.
// Curves, curves.json and the pictures are of the same numbers; the picture shows throughput and Redis' CPU time per task.
//
// What Redis did is from its own counters (INFO cpu, commandstats), before and after a run: CPU time, calls of scripts, and
// the commands that scripts made. A task that meets a waiting poll and no limit costs Redis nothing.
//
// Tasks per sync are a run's tasks by the messages that were appended to the history
// streams meanwhile: with a sync before every answer the server syncs each stored
// message, one after the other, so this decides on a disk where a sync is slow. All
// messages count: submits, grabs, outcomes, and what history and the timer add.
//
// Several settings of sync take turns, run by run, and a ratio is the median of those of
// neighbouring runs, since the machine is not the same an hour later.
package bench
