package bench

import (
	"bytes"
	"image/png"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/chart"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Each second has a p99 of its own: one that is slow does not change that of the next.
func TestEachSecondHasItsOwnP99(t *testing.T) {
	s := newStarts(5)
	for i := range s.began {
		s.began[i].Store(int64(time.Duration(i+1) * time.Millisecond))
	}
	s.began[0].Store(int64(time.Second))
	testkit.Equal(t, "p99s", s.p99s(2), []float64{1e6, 4000, 5000})
}

func TestOverloadInOneLine(t *testing.T) {
	o := &Overload{
		Domains: 10, PerDomain: 20, QuietStart: Quantiles{P50: 1000, P99: 2000}, AlonePerSecond: 50_000,
		WithQuota: Flood{
			Quota: 25_000, OfferedPerSecond: 90_000, AcceptedPerSecond: 25_100, CompletedPerSecond: 25_000, Refused: 7,
			Start: Quantiles{P50: 3000, P99: 4000}, Ratio: 2, P99s: []float64{4000, 3000},
		},
		WithoutQuota: Flood{
			OfferedPerSecond: 100_000, AcceptedPerSecond: 99_000, CompletedPerSecond: 30_000,
			Start: Quantiles{P50: 5000, P99: 6000}, Ratio: 3, P99s: []float64{6000, 5000, 1000},
		},
	}
	const want = "10 domains of 20 tasks/s, start p50 1.00 ms, p99 2.00 alone; beside a domain that does 50000/s alone: " +
		"with a quota of 25000/s 3.00, 4.00: 2.0 times the p99; 90000/s offered, 25100 accepted, 25000 completed, 7 requests refused; " +
		"without 5.00, 6.00: 3.0 times the p99; 100000/s offered, 99000 accepted, 30000 completed, 0 requests refused. Fair filing and queue splits are always on"
	r := Result{Overload: o}
	if r.line() != want || r.key() != 3 {
		t.Errorf("%s, %v", r.line(), r.key())
	}
	picture, err := o.PNG()
	testkit.NoError(t, err)
	if drawn, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil || drawn.Width != chart.Width || drawn.Height != chart.Height {
		t.Errorf("%+v, %v", drawn, err)
	}
}
