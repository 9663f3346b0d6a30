package due

import "time"

// clockSamples is how many looks at the server's clock are remembered.
const clockSamples = 8

// Clock says what time it is for firing: the earlier of the node's clock and the
// server's, so that a node whose clock is ahead neither fires early nor writes a
// cursor of the future (R23).
//
// The server's clock is known by looks at it. Each is late by the way of its
// answer, so the latest of the remembered ones is the closest.
type Clock struct {
	// zeros are what the server's clock said, each less the time since the start.
	zeros [clockSamples]time.Time
	looks int
}

// Learn remembers what the server's clock said before since had passed, measured from
// the owner's start by a clock that nobody sets.
func (c *Clock) Learn(server time.Time, since time.Duration) {
	c.zeros[c.looks%clockSamples] = server.Add(-since)
	c.looks++
}

// Now is the time to fire by, when the node's clock says own.
func (c *Clock) Now(own time.Time, since time.Duration) time.Time {
	if c.looks == 0 {
		return own
	}
	latest := c.zeros[0]
	for _, zero := range c.zeros[1:min(c.looks, clockSamples)] {
		if zero.After(latest) {
			latest = zero
		}
	}
	if server := latest.Add(since); server.Before(own) {
		return server
	}
	return own
}
