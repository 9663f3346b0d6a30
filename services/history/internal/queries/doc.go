// Package queries answers questions about the tasks of one partition. It changes nothing.
//
// Owns: which tasks an answer has, in which order, and where the next page begins.
// Never does: decide how many may ask at a time. The owner lets them look one after the other (partition.Owner.Look).
// On failure: an owner without its lease, or with too many queries waiting, says so; the caller asks again.
package queries

import (
	"github.com/yardmaster-io/yardmaster/services/history/internal/gauges"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// Queries answers about the partition of an owner.
type Queries struct {
	*partition.Owner
	// Domains is what the domains of the partition do and have; nil = it is not known.
	Domains func() map[string]gauges.Work
}

// Of answers about the partition of o.
func Of(o *partition.Owner) Queries { return Queries{Owner: o} }
