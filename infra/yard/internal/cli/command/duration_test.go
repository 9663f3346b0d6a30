package command

import (
	"testing"
	"time"
)

func TestDurationsHaveDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "0d1ms": time.Millisecond, "90m": 90 * time.Minute, "0": 0, "-1s": -time.Second,
	} {
		if got, err := ParseDuration(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "7", "d", "1.5d", "2d3", "1h2d", "999999999999d"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
