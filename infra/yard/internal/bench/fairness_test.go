package bench

import (
	"slices"
	"testing"
)

// Shares are of the starts until the first group is done, without those of weight 0; these are early where another group still waits.
func TestSharesAreCountedWhileAllWait(t *testing.T) {
	one, two, four, zero := weightGroup(0), weightGroup(1), weightGroup(2), weightGroup(3)
	order := []string{
		one, two, four, four, zero, two, four, four, // four is done: 1, 2 and 4 of 7
		one, one, one, two, two, zero, zero, zero,
	}
	shares, early := sharesOf(order, 4)
	want := []Share{{1, 0.143, 0.143}, {2, 0.286, 0.286}, {4, 0.571, 0.571}}
	if !slices.Equal(shares, want) || early != 1 {
		t.Errorf("got %v, %d early", shares, early)
	}
	if shares, early := sharesOf([]string{one, zero, two}, 4); shares != nil || early != 1 {
		t.Errorf("before one is done: %v, %d early", shares, early)
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
	if r.line() != want || r.key() != 3 {
		t.Errorf("%s, %v", r.line(), r.key())
	}
}
