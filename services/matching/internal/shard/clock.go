package shard

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/shared/clock"
)

// Clock gives the core the time.
type Clock struct {
	start time.Time
	log   *clock.Clock
}

// NewClock returns a clock that began a second ago, so that no time on it is zero. Log tells the time of the
// log; nil = the node's own is right.
func NewClock(log *clock.Clock) Clock { return Clock{time.Now().Add(-time.Second), log} }

// Now is the time of a step.
func (c Clock) Now() match.Now {
	now := time.Now()
	return match.Now{Mono: now.Sub(c.start), MS: c.log.At(now).UnixMilli()}
}

// at is the instant of a time on the clock, by the log's.
func (c Clock) at(mono time.Duration) time.Time { return c.log.At(c.start.Add(mono)) }
