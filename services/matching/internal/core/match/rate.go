package match

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// A rate is a limit without slots: nothing is held, counted or given back. The tables keep one number for all shards, by which they say when
// the attempt may start that is next; one may use several starts. Until then tasklists wait for it as for a slot; then it is tried for the first of them. Starts that a call took for
// attempts that did not begin are given back.

// rateRest is how long a shard waits for more starts than one, so that a call is not made for each: at most half of a burst, which is not lost.
const rateRest = 10 * time.Millisecond

// unusedMax is how old a start may be that is given back. So much later than the rate says may another attempt start with it, as may one
// whose grab takes so long. A grab that is older may have been sent again: if its last copy is refused, an earlier one may have been granted.
const unusedMax = resendAfter

// unstart gives back starts that were taken at a time: what they were for is stale, a duplicate, or goes back.
func (s *Shard) unstart(rates []*limit, starts int, at time.Duration) {
	if s.now.Mono-at >= unusedMax {
		return
	}
	for _, l := range rates {
		if !l.Shadow && l.known() {
			l.unused += starts
			s.unblock(l)
			s.dueLimit(l)
		}
	}
}

// learnRate learns how a rate stands after a call.
func (s *Shard) learnRate(l *limit, st *table.LimitState, blocked table.BlockedWhy) {
	l.shownAt, l.lined = s.now.Mono, st.Waits
	l.usage.Saw(s.now.Mono, blocked != 0 || st.Beyond > 0, fullStale)
	if l.short = blocked != 0; !l.short {
		if l.blocked == 0 {
			l.wait = 0
		}
	} else {
		l.blocked = blocked
		rest := min(rateRest, time.Duration(l.Rate.EveryUS*float64(l.Rate.Burst)/2)*time.Microsecond)
		l.freeAt = s.now.Mono + max(st.After, rest)
		if !l.ripens {
			l.ripens = true
			s.ripening = append(s.ripening, l)
		}
	}
	if l.again {
		l.again = false
		s.unblock(l)
	}
}

// ripen has rates tried again of which attempts may start now.
func (s *Shard) ripen() {
	s.ripening = slices.DeleteFunc(s.ripening, func(l *limit) bool {
		known := l.known()
		if known && s.now.Mono < l.freeAt {
			return false
		}
		if l.ripens = false; known {
			s.unblock(l)
		}
		return true
	})
}
