package limit

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// A rate is a limit without slots: nothing is held, counted or given back. The tables keep one number for all shards, by which they say when
// the attempt may start that is next; one may use several starts. Until then tasklists wait for it as for a slot; then it is tried for the first of them. Starts that a call took for
// attempts that did not begin are given back.

// rateRest is how long a shard waits for more starts than one, so that a call is not made for each: at most half of a burst, which is not lost.
const rateRest = 10 * time.Millisecond

// Unstart gives back starts that were taken at a time: what they were for is stale, a duplicate, or goes back.
func (s *Limits) Unstart(rates []*Limit, starts int, at time.Duration) {
	if s.now-at >= UnusedMax {
		return
	}
	for _, l := range rates {
		if !l.Shadow && l.known() {
			l.unused += starts
			s.unblock(l)
			s.ReportSoon(l)
		}
	}
}

// learnRate learns how a rate stands after a call.
func (s *Limits) learnRate(l *Limit, st *table.LimitState, blocked table.BlockedWhy) {
	l.ShownAt, l.lined = s.now, st.Waits
	l.Usage.Saw(s.now, blocked != 0 || st.Beyond > 0, fullStale)
	if l.short = blocked != 0; !l.short {
		if l.Blocked == 0 {
			l.Wait = 0
		}
	} else {
		l.Blocked = blocked
		rest := min(rateRest, time.Duration(l.Rate.EveryUS*float64(l.Rate.Burst)/2)*time.Microsecond)
		s.later(l, s.now+max(st.After, rest))
	}
	if l.Again {
		l.Again = false
		s.unblock(l)
	}
}
