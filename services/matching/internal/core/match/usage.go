package match

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
	return lineEvery
}

// fullStale is for how long a limit counts as full that the tables said to be, while the shard holds or wants slots of it: it
// asks again within, also if it sleeps between two sweeps. Else it counts for lineEvery.
const fullStale = refreshAfter + idleAfter + lineEvery

// usage is how full a limit was in the last hour, as the tables said so. It takes no decision, and is lost with the owner.
type usage struct {
	lasthour.Fullness
	// beyond counts the attempts that a limit in shadow would have held up.
	beyond lasthour.Count[uint32]
	// rejected counts tasks, displaced attempts, that its policy ended.
	rejected, displaced lasthour.Count[uint32]
	// reclaimed counts slots that were freed since history did not know their attempts any more.
	reclaimed int64
}

// wouldWait counts attempts that a limit in shadow would have held up.
func (s *Shard) wouldWait(l *limit, n int) {
	if n > 0 {
		l.usage.beyond.Add(s.now.Mono, uint32(n))
		s.fx.Counts.WouldWait += int64(n)
	}
}

// saturated tells whether no slot is to be had, after a call that booked some for triggers that are not granted yet.
func (l *limit) saturated(booked int) bool {
	return l.blocked != 0 && l.blocked != table.Restoring || l.full && l.entry-booked <= len(l.held)
}
