// Package simulation runs the real cores of history and timer in a world made of seeds:
// one goroutine, a virtual clock, stores that lose, double, delay and leave unknown, owners that
// are paused, killed and doubled, clients and workers that do as they like.
//
// Owns: the world, its faults, the checkers of the invariants, the shrinking of a run that
// fails. Never does: wait, or depend on anything but its seed. On failure: prints the run, as
// small as it could be made, and the command that repeats it.
package simulation
