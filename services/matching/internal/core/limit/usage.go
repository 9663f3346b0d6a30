package limit

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/lasthour"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// fullFor is for how long a limit counts as full after the tables said so. Watched: they are asked again within fullStale.
func fullFor(watched bool) time.Duration {
	if watched {
		return fullStale
	}
	return LineEvery
}

// fullStale is for how long a limit counts as full that the tables said to be, while the shard holds or wants slots of it: it
// asks again within, also if it sleeps between two sweeps. Else it counts for lineEvery.
const fullStale = RefreshAfter + SleepMax + LineEvery

// usage is how full a limit was in the last hour, as the tables said so. It takes no decision, and is lost with the owner.
type usage struct {
	lasthour.Fullness
	// beyond counts the attempts that a limit in shadow would have held up.
	beyond lasthour.Count[uint32]
	// Rejected counts tasks, displaced attempts, that its policy ended.
	Rejected, Displaced lasthour.Count[uint32]
	// reclaimed counts slots that were freed since history did not know their attempts any more.
	reclaimed int64
}

// wouldWait counts attempts that a limit in shadow would have held up.
func (s *Limits) wouldWait(l *Limit, n int) {
	if n > 0 {
		l.Usage.beyond.Add(s.now, uint32(n))
		s.Done.WouldWait += int64(n)
	}
}

// saturated tells whether no slot is to be had, after a call that booked some for triggers that are not granted yet.
func (l *Limit) saturated(booked int) bool {
	return l.Blocked != 0 && l.Blocked != table.Restoring || l.full && l.Entry-booked <= len(l.Held)
}
