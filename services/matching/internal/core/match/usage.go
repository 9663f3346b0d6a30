package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/lasthour"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// fullStale is for how long a limit counts as full that the tables said to be, while the shard holds or wants slots of it: it
// asks again within, also if it sleeps between two sweeps. Else it counts for lineEvery.
const fullStale = refreshAfter + idleAfter + lineEvery

// usage is how full a limit was in the last hour, as the tables said so. It takes no decision, and is lost with the owner.
type usage struct {
	// metAt is since when it is watched.
	metAt time.Duration
	// full: it was when the tables said so last, at seenAt. watched: they are asked again within fullStale. fullAt is since when.
	full, watched  bool
	seenAt, fullAt time.Duration
	// minutes count in ms how long it was full; beyond the attempts that a limit in shadow would have held up.
	minutes lasthour.Count[uint16]
	beyond  lasthour.Count[uint32]
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

// saw notes what the tables say.
func (u *usage) saw(now time.Duration, full, watched bool) {
	until := u.until(now)
	if u.full {
		u.add(u.seenAt, until)
	}
	if full && (!u.full || until < now) {
		u.fullAt = now
	}
	u.full, u.watched, u.seenAt = full, watched, now
}

// until is until when it counts as full if it was when it was seen last.
func (u *usage) until(now time.Duration) time.Duration {
	if u.watched {
		return min(now, u.seenAt+fullStale)
	}
	return min(now, u.seenAt+lineEvery)
}

// add counts a time in which it was full.
func (u *usage) add(from, to time.Duration) {
	for from < to {
		end := min(to, (from/time.Minute+1)*time.Minute)
		u.minutes.Add(from, uint16(end.Milliseconds()-from.Milliseconds()))
		from = end
	}
}

// hour is for how long it was full within the time observed, an hour at most, and since when it is; 0 = it is not.
func (u *usage) hour(now time.Duration) (full, observed, since time.Duration) {
	first := max(0, now/time.Minute-lasthour.Minutes+1) * time.Minute
	observed = now - max(u.metAt, first)
	if u.full {
		until := u.until(now)
		full = max(0, until-max(u.seenAt, first))
		if until == now {
			since = now - u.fullAt
		}
	}
	full += time.Duration(u.minutes.Sum(now)) * time.Millisecond
	return min(full, observed), observed, since
}
