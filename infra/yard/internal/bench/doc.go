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
// `yard bench --help` describes the workloads; their numbers are in workloads.go.
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
