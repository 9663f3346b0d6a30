package yard

import (
	"testing"
	"testing/synctest"
	"time"
)

// What a step takes is part of its share of the rate: 100 tasks at 2000 a second take 50 ms, of which the step itself takes some.
func TestAStepsTimeCountsForItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ step, rest time.Duration }{{0, 50}, {42, 8}, {50, 0}, {70, 0}} {
			began := time.Now()
			time.Sleep(c.step * time.Millisecond)
			if got := restOf(began, 100, 2000); got != c.rest*time.Millisecond {
				t.Errorf("behind a step of %d ms the next one waits %v, want %d ms", c.step, got, c.rest)
			}
		}
	})
}
