// Package acceptance runs scenarios by which an earlier system's partitioned tasklists were accepted (Cadence's simulation of matching) on two
// processes of each service, and prints one table: beside each run's numbers what it is expected to show.
//
// Owns: the runs, the table, and its JSON file. YARD_ACCEPTANCE_ROUNDS (default 1) is how often each run is repeated; the table has the run
// with the median p99. YARD_ACCEPTANCE_OUT names the file.
//
// Never does: assert a time. The test asserts that each task is delivered once; "differs" in the table fails nothing.
//
// On failure: the test names the run, and prints the logs of all processes.
package acceptance
