package limit

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
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
		l.InRing(ringOver, false)
		return
	}
	switch full := st.Used >= l.Max && !st.Restoring && !l.Counting(); {
	case !full:
		l.Over.FullAt = 0
	case l.Over.FullAt == 0 || booked > 0 && !waited:
		l.Over.FullAt = now
	}
	if l.Over.FullAt == 0 || l.Blocked == table.Full {
		l.InRing(ringOver, l.Over.FullAt > 0)
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
