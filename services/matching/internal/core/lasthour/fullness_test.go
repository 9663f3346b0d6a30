package lasthour

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The ring of minutes says what a list of all times does.
func TestUsageIsThatOfTheLastHour(t *testing.T) {
	seed := rand.Uint64()
	dice := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed", seed)
	for range 200 {
		now := time.Duration(dice.IntN(7_200_000)) * time.Millisecond
		u := Fullness{MetAt: now}
		type span struct{ from, to time.Duration }
		var all []span
		full, lasts, at := false, time.Duration(0), now
		for range 100 {
			step := time.Duration(dice.IntN(40_000)) * time.Millisecond
			if dice.IntN(20) == 0 {
				step = time.Duration(dice.IntN(5_000_000)) * time.Millisecond
			}
			now += step
			until := min(now, at+lasts)
			first := max(0, now/time.Minute-Minutes+1) * time.Minute
			spans := all
			if full {
				spans = append(spans[:len(spans):len(spans)], span{at, until})
			}
			var want time.Duration
			for _, s := range spans {
				want += max(0, s.to-max(s.from, first))
			}
			got, observed, since := u.Hour(now)
			if got != want || observed != now-max(u.MetAt, first) || observed > time.Hour || (since > 0) != (full && until == now && now > u.fullAt) {
				t.Fatalf("at %v: full %v of %v, since %v; want %v", now, got, observed, since, want)
			}
			if dice.IntN(3) == 0 {
				continue
			}
			all = spans
			full, lasts, at = dice.IntN(2) == 0, time.Duration(1+dice.IntN(40))*time.Second, now
			u.Saw(now, full, lasts)
		}
	}
}
