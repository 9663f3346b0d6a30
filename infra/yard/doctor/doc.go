// Package doctor checks what a running cluster has stored, and reports inconsistencies.
//
// Owns: the kinds of findings (kinds.go), the checks as pure functions of what was read (tasks.go, index.go, batches.go, schedules.go, slots.go), and the repeated
// looks: an inconsistency is reported only if each look finds it at the same place (examine.go).
//
// Never does: write, unless it is asked to repair. Then it does only what the kind of a finding says (repair.go). It changes no task.
//
// On failure: Report.Unchecked names what could not be read, and why; the rest is checked. Examine fails only if there is no cluster.
//
// Memory: a pass holds about 75 bytes for each finished task and 130 for each other one: 75 to 130 MB for a million. A partition with more tasks than
// Options.TasksMax is read in several passes, each for a part of the ids, so memory is bounded, and time is not. Dead letters are held for the whole run,
// about 100 bytes each.
package doctor
