package bench

import (
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
)

// Shares are of the starts until the first group is done, without those of weight 0; these are early where another group still waits.
func TestSharesAreCountedWhileAllWait(t *testing.T) {
	one, two, four, zero := weightGroup(0), weightGroup(1), weightGroup(2), weightGroup(3)
	order := []string{
		one, two, four, four, zero, two, four, four, // four is done: 1, 2 and 4 of 7
		one, one, one, two, two, zero, zero, zero,
	}
	shares, early := sharesOf(order, 4)
	want := []report.Share{{Weight: 1, Share: 0.143, Fair: 0.143}, {Weight: 2, Share: 0.286, Fair: 0.286}, {Weight: 4, Share: 0.571, Fair: 0.571}}
	if !slices.Equal(shares, want) || early != 1 {
		t.Errorf("got %v, %d early", shares, early)
	}
	if shares, early := sharesOf([]string{one, zero, two}, 4); shares != nil || early != 1 {
		t.Errorf("before one is done: %v, %d early", shares, early)
	}
}
