// Package schedules starts the runs of the schedules whose home is a partition.
//
// A schedule is one message of the history log of its home: what was put, and its progress. Frontends change it, and the keeper, which runs with the
// owner of the timer's partition: it decides what is due (core/runs), and stores the new progress together with the submits of the runs that
// start, in one write that holds only if nothing else was stored since it read. So a run is submitted once, whatever dies, and whichever keepers there are.
//
// Owns: when a schedule is decided, and the form in which it is stored. Never does: work out times (shared/schedule), or follow a task after its submit, but for
// whether it has ended, where another run waits for that.
//
// On failure: a write of unknown outcome is followed by a new read. A schedule that cannot be read, or decided, is tried again, and holds up no other.
package schedules
