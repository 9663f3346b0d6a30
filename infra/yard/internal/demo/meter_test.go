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
		now, total := time.Unix(0, 0), rapid.IntRange(0, 1000).Draw(t, "start")
		first := total
		m.observe(now, total)
		for range rapid.IntRange(1, 60).Draw(t, "observations") {
			now = now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
			total += rapid.IntRange(0, 500).Draw(t, "grown")
			m.observe(now, total)
		}
		history := m.history()
		testkit.MustEqual(t, "seconds of history", len(history), min(int(now.Sub(time.Unix(0, 0)).Seconds()), meterHistory))
		if now.Sub(time.Unix(0, 0)) > meterHistory*time.Second {
			return // some of it is forgotten
		}
		sum := float64(m.second.total - first)
		for _, v := range history {
			sum -= v
		}
		if math.Abs(sum) > float64(len(history)) { // a fraction of a task is lost to rounding in each second
			t.Fatalf("the history is off by %v", sum)
		}
	})
}

func TestMeterRateForgets(t *testing.T) {
	var m meter
	start := time.Unix(0, 0)
	testkit.Equal(t, "a meter without readings", m.rate(), 0)
	for i := range 41 { // ten seconds at 100/s
		m.observe(start.Add(time.Duration(i)*250*time.Millisecond), i*25)
	}
	testkit.Equal(t, "the rate", m.rate(), 100)
	for i := 41; i < 61; i++ { // then nothing
		m.observe(start.Add(time.Duration(i)*250*time.Millisecond), 1000)
	}
	if m.rate() != 0 {
		t.Errorf("the rate is %v after five quiet seconds", m.rate())
	}
}
