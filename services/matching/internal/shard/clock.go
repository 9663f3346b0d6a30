package shard

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
)

// Clock gives the core the time.
type Clock struct{ start time.Time }

// NewClock returns a clock that began a second ago, so that no time on it is zero.
func NewClock() Clock { return Clock{time.Now().Add(-time.Second)} }

// Now is the time of a step.
func (c Clock) Now() match.Now {
	now := time.Now()
	return match.Now{Mono: now.Sub(c.start), MS: now.UnixMilli()}
}

// at is the instant of a time on the clock.
func (c Clock) at(mono time.Duration) time.Time { return c.start.Add(mono) }
