// Package clocks runs whole systems in which the clocks of some nodes are a minute off.
//
// Owns: the binaries whose wall clock can be set (buildSkewed), and what must hold with
// them: nothing early, nothing a minute late, limits that grant, queries that are answered, and a node whose skew
// is reported, or that is refused.
//
// Never does: change a clock of the machine, or look into a process; the API, the health pages, the
// logs and the yard command tell. NATS, Redis and the test itself have the right time.
//
// On failure: the test prints the logs of all processes.
package clocks
