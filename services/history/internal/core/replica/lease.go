package replica

import "time"

// LeaseFor is how long a saved checkpoint lets its owner go on, from before it was sent. It
// is the same for all owners: a purge trusts that the others keep to it.
const LeaseFor = 2 * time.Second

// purgeAfter is how long a checkpoint must have covered what is purged. Within it the
// lease of every other owner is over: theirs began before the claim of ours. Twice the
// lease allows for clocks of which one runs at half the speed of another.
const purgeAfter = 2 * LeaseFor

// lease is until when the owner may go on.
type lease struct{ until time.Duration }

func (l *lease) granted(sentAt time.Duration) { l.until = max(l.until, sentAt+LeaseFor) }

func (l *lease) holds(now time.Duration) bool { return now < l.until }

// purger decides what may be purged.
type purger struct {
	// covered are levels and since when a saved checkpoint has had them, oldest first.
	covered []coveredSince
	done    Levels
	busy    bool
	next    int64
}

type coveredSince struct {
	levels Levels
	since  time.Duration
}

// coveredMax bounds what is remembered; past it one in the middle is dropped.
const coveredMax = 64

func (p *purger) saved(levels Levels, now time.Duration) {
	if n := len(p.covered); n == coveredMax {
		p.covered = append(p.covered[:n/2], p.covered[n/2+1:]...)
	}
	p.covered = append(p.covered, coveredSince{levels, now})
}

// take returns what may be purged now, if that is more than last time.
func (p *purger) take(now time.Duration) *Levels {
	var ripe *Levels
	n := 0
	for n < len(p.covered) && now-p.covered[n].since > purgeAfter {
		ripe = &p.covered[n].levels
		n++
	}
	if ripe == nil {
		return nil
	}
	levels := *ripe
	p.covered = p.covered[n:]
	if levels.equal(&p.done) {
		return nil
	}
	p.done, p.busy = levels, true
	return &levels
}

// purged takes in that what was taken is purged; again: not all of it.
func (p *purger) purged(again bool) {
	p.busy = false
	if again {
		p.done = Levels{}
	}
}
