package clock

import "time"

const (
	// looksKept is how many looks at the server's clock are remembered.
	looksKept = 8
	// driftMax is how far two clocks may run apart while looks are remembered. More says that the
	// server's clock was set.
	driftMax = 20 * time.Millisecond
)

// Estimate is what is known of the server's clock from looks at it. Times of this node are since any start, by a
// clock that no one sets. It is a value: no clock is read. The zero Estimate knows nothing.
type Estimate struct {
	looks []look
	Reading
}

// Reading is what the looks say. It may be copied.
type Reading struct {
	// latest is the look of the latest zero, quickest the one whose answer took the least.
	latest, quickest look
}

// look is one answer of the server. Its stamp is of some time between question and answer.
type look struct {
	// zero is the server's time at the node's start, at least: as if the answer had been on its way for no time.
	zero time.Time
	took time.Duration
}

// most is the server's time at the node's start, at most.
func (l look) most() time.Time { return l.zero.Add(l.took) }

// Learn takes in that the server's clock said server, in answer to a question of asked that was answered at
// answered. If the server's clock was set, either way, what was known before is forgotten.
func (e *Estimate) Learn(server time.Time, asked, answered time.Duration) {
	l := look{zero: server.Add(-answered), took: max(answered-asked, 0)}
	if e.Known() && (e.latest.zero.Sub(l.most()) > driftMax || l.zero.Sub(e.quickest.most()) > driftMax) {
		e.looks = e.looks[:0]
	}
	if len(e.looks) == looksKept {
		e.looks = append(e.looks[:0], e.looks[1:]...)
	}
	e.looks = append(e.looks, l)
	e.Reading = Reading{e.looks[0], e.looks[0]}
	for _, l := range e.looks[1:] {
		if l.zero.After(e.latest.zero) {
			e.latest = l
		}
		if l.took <= e.quickest.took {
			e.quickest = l
		}
	}
}

// Known tells whether there was a look.
func (e *Estimate) Known() bool { return len(e.looks) > 0 }

// At is the server's time when the node's is since: never later, so that nothing is early by the log, and earlier
// by no more than the way of the quickest answer.
func (r *Reading) At(since time.Duration) time.Time { return r.latest.zero.Add(since) }

// Skew is how far a clock that says own at since is ahead of the server's.
func (r *Reading) Skew(own time.Time, since time.Duration) Skew {
	within := (r.quickest.took + 1) / 2
	return Skew{Ahead: own.Sub(r.quickest.zero.Add(within + since)), Within: within}
}

// Skew is how far a clock is ahead of the server's; negative = behind.
type Skew struct {
	Ahead time.Duration
	// Within is by how much Ahead may be wrong, either way.
	Within time.Duration
}

// Least is how far off the clock is at least.
func (s Skew) Least() time.Duration { return max(s.Ahead.Abs()-s.Within, 0) }
