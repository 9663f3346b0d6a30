// Package lasthour counts something by minutes, and knows how often it was in the last hour.
//
// Owns: the counts. Never does: read a clock. On failure: nothing can fail; they are lost with their owner.
package lasthour

import "time"

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
