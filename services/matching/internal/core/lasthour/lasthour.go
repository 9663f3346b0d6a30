// Package lasthour counts something by minutes, and knows how often it was in the last hour.
//
// Owns: the counts. Never does: read a clock. On failure: nothing can fail; they are lost with their owner.
package lasthour

import (
	"time"
)

// Minutes is how many are kept.
const Minutes = 60

// Count counts something in each of the last minutes, up to the minute last; nil = nothing was counted.
type Count[N uint16 | uint32] struct {
	each *[Minutes]N
	last int64
}

// Add counts n in the minute of an instant, if that is not over an hour before the last one.
func (m *Count[N]) Add(at time.Duration, n N) {
	minute := int64(at / time.Minute)
	if m.each == nil {
		m.each, m.last = new([Minutes]N), minute
	}
	m.advance(minute)
	if minute > m.last-Minutes {
		m.each[minute%Minutes] += n
	}
}

// advance makes a minute the last one.
func (m *Count[N]) advance(to int64) {
	for ; m.last < to; m.last++ {
		if to-m.last > Minutes {
			m.last = to - Minutes
		}
		m.each[(m.last+1)%Minutes] = 0
	}
}

// Sum is what was counted in the last hour.
func (m *Count[N]) Sum(now time.Duration) int64 {
	if m.each == nil {
		return 0
	}
	m.advance(int64(now / time.Minute))
	all := int64(0)
	for _, n := range m.each {
		all += int64(n)
	}
	return all
}

// Fullness is for how long something was full in the last hour, as somebody saw who looks now and then.
type Fullness struct {
	// MetAt is since when it is watched.
	MetAt time.Duration
	// full: it was when it was seen last, at seenAt, and counts as that for lasts. fullAt is since when.
	full                  bool
	seenAt, fullAt, lasts time.Duration
	// endedAt is when it was full no more, after it was since fullAt.
	endedAt time.Duration
	// minutes count in ms how long it was full.
	minutes Count[uint16]
}

// Saw notes whether it is full, and for how long that counts if it is not seen again.
func (u *Fullness) Saw(now time.Duration, full bool, lasts time.Duration) {
	until := u.until(now)
	if u.full {
		u.add(u.seenAt, until)
		u.endedAt = until
	}
	if full && (!u.full || until < now) {
		u.fullAt = now
	}
	u.full, u.lasts, u.seenAt = full, lasts, now
}

// until is until when it counts as full if it was when it was seen last.
func (u *Fullness) until(now time.Duration) time.Duration { return min(now, u.seenAt+u.lasts) }

// add counts a time in which it was full.
func (u *Fullness) add(from, to time.Duration) {
	for from < to {
		end := min(to, (from/time.Minute+1)*time.Minute)
		u.minutes.Add(from, uint16(end.Milliseconds()-from.Milliseconds()))
		from = end
	}
}

// Hour is for how long it was full within the time observed, an hour at most, and since when it is; 0 = it is not.
func (u *Fullness) Hour(now time.Duration) (full, observed, since time.Duration) {
	first := max(0, now/time.Minute-Minutes+1) * time.Minute
	observed = now - max(u.MetAt, first)
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

// Last is the last time in which it was full, up to now if it still is. It was never full if both are 0.
func (u *Fullness) Last(now time.Duration) (since, until time.Duration) {
	if u.full {
		return u.fullAt, u.until(now)
	}
	return u.fullAt, u.endedAt
}
