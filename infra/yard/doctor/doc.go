// Package doctor looks at a running cluster and says where it is not as it must be.
//
// Owns: what a finding is (kinds.go), the checks as pure functions of what was read (tasks.go, index.go, owners.go,
// slots.go), and the looks: what is found is looked at again, and reported only if it is found each time, at the same place (examine.go).
//
// Never does: write, unless it is asked to repair, and then only what a finding's kind says (repair.go). It changes no task.
//
// On failure: what it cannot read is in Report.Unchecked, with the reason; the rest is checked. Examine fails only where there is no
// cluster to look at.
//
// Memory: a pass holds about 75 bytes per finished task and 130 per other one: 75 to 130 MB per million. Where a partition has more tasks than Options.TasksMax, it is read in
// several passes, each for a part of the ids; so memory is bounded, and time is not. Dead letters are held for the whole run, about 100 bytes each.
package doctor
