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

// Overflow is what is known of a limit that has a policy.
type Overflow struct {
	// FullAt is since when it is full, as each call about it said; 0 = it is not.
	FullAt time.Duration
	// At is when it may act again.
	At time.Duration
	// Wanted: a call is to take triggers that are to be rejected.
	Wanted bool
}

// Policy is what a limit does that is full.
func (l *Limit) Policy() OnFull {
	switch {
	case l.Of != nil:
		return l.Of.OnFull
	case !l.counted() || l.Shadow:
		return Wait
	}
	return l.OnFull
}

// Patience is how long a trigger waits until the policy acts.
func (l *Limit) Patience() time.Duration {
	if l.Of != nil {
		return l.Of.OnFullAfter
	}
	return l.OnFullAfter
}

// sawFull notes what a call says about a limit that has a policy. waited: triggers waited for it before; booked: some got slots. If
// none did, nothing tells whether it was full all the time.
func (l *Limit) sawFull(st *table.LimitState, waited bool, booked int, now time.Duration) {
	if l.Policy() == Wait {
		l.Over = Overflow{}
		l.Domain.Rings[ringOver].remove(l, ringOver)
		return
	}
	switch full := st.Used >= l.Max && !st.Restoring && !l.Counting(); {
	case !full:
		l.Over.FullAt = 0
	case l.Over.FullAt == 0 || booked > 0 && !waited:
		l.Over.FullAt = now
	}
	if ring := &l.Domain.Rings[ringOver]; l.Over.FullAt > 0 && l.Blocked == table.Full {
		ring.Add(l, ringOver)
	} else if l.Over.FullAt == 0 {
		ring.remove(l, ringOver)
	}
}

// Overflows tells whether the policy of a limit may act now.
func (l *Limit) Overflows(now time.Duration) bool {
	return l.Policy() != Wait && l.Blocked == table.Full && l.Over.FullAt > 0 && now-l.Over.FullAt >= l.Patience() && l.known() && !l.Counting()
}

// NextFull are the next n limits whose policy may come to act.
func (d *Domain) NextFull(n int) []*Limit { return d.Rings[ringOver].next(n) }

// Ended counts a task that a limit's policy rejected, or an attempt that it displaced.
func (l *Limit) Ended(displaced bool, now time.Duration) {
	of := l
	if l.Of != nil {
		of = l.Of
	}
	if displaced {
		of.Usage.Displaced.Add(now, 1)
	} else {
		of.Usage.Rejected.Add(now, 1)
	}
}
