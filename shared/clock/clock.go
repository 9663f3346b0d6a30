package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// Clock tells the server's time. A nil Clock, and one that has not learned anything yet, returns the node's own
// time, which is right for a process that contains the server. It is safe for concurrent use.
type Clock struct {
	start time.Time // with the reading of the clock that no one sets
	mu    sync.Mutex
	// estimate is Learn's, reading its last one.
	estimate Estimate
	reading  atomic.Pointer[Reading]
}

// New returns a clock that has not learned anything.
func New() *Clock { return &Clock{start: time.Now()} }

// Learn takes in that the server's clock said server, between asked and answered of time.Now.
func (c *Clock) Learn(server, asked, answered time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.estimate.Learn(server, asked.Sub(c.start), answered.Sub(c.start))
	reading := c.estimate.Reading
	c.reading.Store(&reading)
}

// Now is the server's time, as Reading.At. It is for comparing with the log's: it may go back.
func (c *Clock) Now() time.Time { return c.At(time.Now()) }

// At is the server's time when time.Now returned t.
func (c *Clock) At(t time.Time) time.Time {
	if r := c.read(); r != nil {
		return r.At(t.Sub(c.start))
	}
	return t.Round(0)
}

// Skew is how far the node's clock is ahead of the server's; ok is false where that is not known.
func (c *Clock) Skew() (s Skew, ok bool) {
	r := c.read()
	if r == nil {
		return Skew{}, false
	}
	now := time.Now()
	return r.Skew(now.Round(0), now.Sub(c.start)), true
}

func (c *Clock) read() *Reading {
	if c == nil {
		return nil
	}
	return c.reading.Load()
}
