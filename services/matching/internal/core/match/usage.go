package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// hourMinutes is how many minutes are kept of how full a limit was.
	hourMinutes = 60
	// fullStale is for how long a limit counts as full that the tables said to be, while the shard holds or wants slots of it: it
	// asks again within, also if it sleeps between two sweeps. Else it counts for lineEvery.
	fullStale = refreshAfter + idleAfter + lineEvery
)

// usage is how full a limit was in the last hour, as the tables said so. It takes no decision, and is lost with the owner.
type usage struct {
	// metAt is since when it is watched.
	metAt time.Duration
	// full: it was when the tables said so last, at seenAt. watched: they are asked again within fullStale. fullAt is since when.
	full, watched  bool
	seenAt, fullAt time.Duration
	// minutes count in ms how long it was full in each of the last minutes, up to the minute last; nil = it never was.
	minutes *[hourMinutes]uint16
	last    int64
	// reclaimed counts slots that were freed since history did not know their attempts any more.
	reclaimed int64
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
	if u.minutes == nil {
		u.minutes, u.last = new([hourMinutes]uint16), int64(from/time.Minute)
	}
	for from < to {
		at := int64(from / time.Minute)
		u.advance(at)
		end := min(to, time.Duration(at+1)*time.Minute)
		if at > u.last-hourMinutes { // else it is over an hour ago
			u.minutes[at%hourMinutes] += uint16(end.Milliseconds() - from.Milliseconds())
		}
		from = end
	}
}

// advance makes a minute the last one.
func (u *usage) advance(to int64) {
	for ; u.last < to; u.last++ {
		if to-u.last > hourMinutes {
			u.last = to - hourMinutes
		}
		u.minutes[(u.last+1)%hourMinutes] = 0
	}
}

// hour is for how long it was full within the time observed, an hour at most, and since when it is; 0 = it is not.
func (u *usage) hour(now time.Duration) (full, observed, since time.Duration) {
	first := max(0, now/time.Minute-hourMinutes+1) * time.Minute
	observed = now - max(u.metAt, first)
	if u.full {
		until := u.until(now)
		full = max(0, until-max(u.seenAt, first))
		if until == now {
			since = now - u.fullAt
		}
	}
	if u.minutes != nil {
		u.advance(int64(now / time.Minute))
		for _, ms := range u.minutes {
			full += time.Duration(ms) * time.Millisecond
		}
	}
	return min(full, observed), observed, since
}
