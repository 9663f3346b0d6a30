package demo

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestMeterLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m meter
		now, total, sum := time.Unix(0, 0), rapid.IntRange(0, 1000).Draw(t, "start"), 0.0
		first, seconds, since := total, 0, now
		m.observe(now, total)
		for range rapid.IntRange(1, 60).Draw(t, "observations") {
			now = now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
			total += rapid.IntRange(0, 500).Draw(t, "grown")
			if m.observe(now, total); len(m.seconds) > seconds {
				sum += m.seconds[seconds] * now.Sub(since).Seconds()
				seconds, since = len(m.seconds), now
			}
		}
		testkit.MustEqual(t, "the sum", m.total, total)
		if math.Abs(sum-float64(m.before-first)) > 1e-6 {
			t.Fatalf("the seconds are %v of %d", sum, m.before-first)
		}
	})
}

func TestMeterRateForgets(t *testing.T) {
	var m meter
	start := time.Unix(0, 0)
	testkit.Equal(t, "a meter without readings", m.rate(), 0)
	for i := range 600 { // more than it remembers, at 100/s
		m.observe(start.Add(time.Duration(i)*250*time.Millisecond), i*25)
	}
	testkit.Equal(t, "the rate", m.rate(), 100)
	testkit.Equal(t, "seconds", len(m.seconds), meterHistory)
	for i := 600; i < 620; i++ { // then nothing
		m.observe(start.Add(time.Duration(i)*250*time.Millisecond), 599*25)
	}
	testkit.Equal(t, "the rate after five quiet seconds", m.rate(), 0)
}
