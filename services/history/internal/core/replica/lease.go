package replica

import (
	"cmp"
	"time"
)

// LeaseFor is how long a saved checkpoint lets its owner go on, from before it was sent. It
// is the same for all owners: a purge trusts that the others keep to it.
const LeaseFor = 2 * time.Second

// purgeAfter is how long a checkpoint must have covered what is purged. Within it the
// lease of every other owner is over: theirs began before the claim of ours. Twice the
// lease allows for clocks of which one runs at half the speed of another.
const purgeAfter = 2 * LeaseFor

func (l *lease) granted(sentAt time.Duration) {
	l.until = max(l.until, sentAt+cmp.Or(l.lasts, LeaseFor))
}

func (l *lease) holds(now time.Duration) bool { return now < l.until }

// coveredMax bounds what is remembered while nothing can be purged; past it the oldest is forgotten.
const coveredMax = 64

func (p *purger) saved(levels Levels, now time.Duration) {
	if len(p.covered) == coveredMax {
		p.covered, p.taken = p.covered[1:], max(0, p.taken-1)
	}
	p.covered = append(p.covered, coveredSince{levels, now})
}

// take returns what may be purged now, nil = nothing.
func (p *purger) take(now time.Duration) *Levels {
	p.taken = 0
	for p.taken < len(p.covered) && now-p.covered[p.taken].since > purgeAfter {
		p.taken++
	}
	if p.taken == 0 {
		return nil
	}
	p.busy = true
	levels := p.covered[p.taken-1].levels
	return &levels
}

// purged takes in that what was taken is purged; again: not all of it.
func (p *purger) purged(again bool) {
	p.busy = false
	if !again {
		p.covered = p.covered[p.taken:]
	}
}
