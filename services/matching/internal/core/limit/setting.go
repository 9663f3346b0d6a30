package limit

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Setting is how many attempts may run at once of those that it covers: all of its domain, or those of a tasklist, or of
// some types.
type Setting struct {
	Ref table.Ref
	// Max is at least 1.
	Max int
	// Paused: nothing that it covers may start. It has no slots, so Max says nothing.
	Paused bool
	// Rate is how many may start in a time, if its EveryUS is not 0. It has no slots, so Max says nothing.
	Rate table.Rate
	// PerGroup: Max is for each group of what it covers. Tasks without a group it does not cover.
	PerGroup bool
	// Shadow: it counts what it would hold up, and holds nothing up. Not if it counts per group.
	Shadow bool
	// OnFull is what it does when it is full and a trigger has waited for OnFullAfter.
	OnFull      OnFull
	OnFullAfter time.Duration
	// Wide: it covers all. Else Tasklist is not empty, or Types are not; they are sorted.
	Wide     bool
	Tasklist string
	Types    []string
}

// rated tells whether it is a rate.
func (l *Setting) rated() bool { return l.Rate.EveryUS > 0 }

// counted tells whether it has slots, which attempts use.
func (l *Setting) counted() bool { return !l.Paused && !l.rated() }

// sameAs tells whether two limits cover the same.
func (l *Setting) sameAs(o *Setting) bool {
	return l.Paused == o.Paused && l.PerGroup == o.PerGroup && l.rated() == o.rated() && l.Wide == o.Wide && l.Tasklist == o.Tasklist && slices.Equal(l.Types, o.Types)
}

// Running is one running attempt of the shard.
type Running struct {
	Domain, Tasklist, Type string
	// Group is its task's; empty = none.
	Group string
	// Path is what was booked; empty = nothing.
	Path []table.Ref
	// Member is ids.Booking of the attempt.
	Member string
	// DeadlineMS is when it must be over, Unix ms.
	DeadlineMS int64
}

// OnFull is what a limit does that is full.
type OnFull uint8

// The policies.
const (
	// Wait: triggers wait until a slot is free.
	Wait OnFull = iota
	// RejectNewest: tasks that have waited for OnFullAfter end.
	RejectNewest
	// CancelOldest: for each task that has waited for OnFullAfter the attempt is asked to stop that holds a slot for the longest.
	CancelOldest
)
