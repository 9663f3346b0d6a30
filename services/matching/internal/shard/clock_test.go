package shard

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/clock"
)

// R40: how long slots are booked for is reckoned by the log's time, in which attempts end.
func TestR40_TheTimeOfAttemptsIsTheServers(t *testing.T) {
	log := clock.New()
	now := time.Now()
	log.Learn(now.Add(-time.Hour), now, now)
	c := NewClock(log)
	step := c.Now()
	if ago := time.Since(time.UnixMilli(step.MS)); ago < time.Hour-time.Second || ago > 2*time.Hour-time.Second {
		t.Errorf("a step is dated %v ago, the server's clock is an hour behind", ago)
	}
	if off := c.at(step.Mono).Sub(time.UnixMilli(step.MS)); off.Abs() > time.Second {
		t.Errorf("spans are dated %v off", off)
	}
	if step.Mono < time.Second || step.Mono > time.Hour {
		t.Errorf("the clock of durations says %v", step.Mono)
	}
}
