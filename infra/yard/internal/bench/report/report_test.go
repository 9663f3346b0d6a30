package report

import (
	"bytes"
	"image/png"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/chart"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A run's ratio is that of two neighbouring runs, whatever the hour did to both.
func TestRatioIsOfPairs(t *testing.T) {
	rate := func(sync string, all ...float64) (runs []Result) {
		for _, x := range all {
			runs = append(runs, Result{Workload: "W1", Sync: sync, TasksPerSecond: x})
		}
		return runs
	}
	r := RatioOf(rate("always", 50, 10, 80), rate("1s", 100, 25, 100))
	want := Ratio{Workload: "W1", Sync: "always", By: "1s", Ratio: 0.5, Runs: []float64{0.5, 0.4, 0.8}}
	if r.Ratio != want.Ratio || !slices.Equal(r.Runs, want.Runs) || r.Sync != want.Sync || r.By != want.By {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

// Where the history streams may not be read, what is not known is not shown as a number.
func TestTasksPerSyncThatAreNotKnown(t *testing.T) {
	testkit.Equal(t, "result", (Result{Tasks: 10}).perSync(), "-")
}

func TestMedianAndQuantiles(t *testing.T) {
	m := Median([]Result{{TasksPerSecond: 30}, {TasksPerSecond: 10}, {TasksPerSecond: 20}})
	if m.TasksPerSecond != 20 || len(m.Runs) != 3 || m.Runs[0] != 30 {
		t.Errorf("%+v", m)
	}
	var all []time.Duration
	for i := 100; i > 0; i-- {
		all = append(all, time.Duration(i)*time.Microsecond)
	}
	if q := QuantilesOf(all); q != (Quantiles{50, 90, 99, 100}) {
		t.Errorf("%+v", q)
	}
}

func TestFairnessInOneLine(t *testing.T) {
	f := &Fairness{
		Small: 10, FloodPerSecond: 1600, QuietStart: Quantiles{P50: 1000, P99: 2000}, DomainStart: Quantiles{P50: 3000, P99: 4000},
		GroupRatio: 3, DomainRatio: 2, Shares: []Share{{1, 0.2, 0.25}, {3, 0.8, 0.75}}, ZeroEarly: 1,
	}
	const want = "10 tasks/s of a group, start p50 1.00 ms, p99 2.00 alone; 5.00, 6.00 beside another group's flood of 1600/s: 3.0 times the p99; " +
		"3.00, 4.00 beside another domain's: 2.0 times; of the starts weight 1 has 0.200 (0.250), 3 has 0.800 (0.750); 1 of weight 0 were early"
	r := Result{Start: &Quantiles{P50: 5000, P99: 6000}, Fairness: f}
	if r.Line() != want || r.key() != 3 {
		t.Errorf("%s, %v", r.Line(), r.key())
	}
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
	if r.Line() != want || r.key() != 3 {
		t.Errorf("%s, %v", r.Line(), r.key())
	}
	picture, err := o.PNG()
	testkit.NoError(t, err)
	if drawn, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil || drawn.Width != chart.Width || drawn.Height != chart.Height {
		t.Errorf("%+v, %v", drawn, err)
	}
}
