package iwrr

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// take is the next n classes of those that are ready.
func take(t *testing.T, turn *Turn, w Weights, n int, ready func(int) bool) (all []int) {
	t.Helper()
	for range n {
		class, after, ok := turn.Next(w, ready)
		if !ok {
			return all
		}
		all, *turn = append(all, class), after
	}
	return all
}

func every(int) bool { return true }

func TestTheOrderIsInterleavedByLevels(t *testing.T) {
	for _, c := range []struct {
		weights []int
		want    string
	}{
		{[]int{5, 3, 2, 1}, "[0 0 0 1 0 1 2 0 1 2 3 0 0 0 1]"},
		{[]int{1, 3}, "[1 1 1 0 1 1 1 0]"},
		{[]int{2, 2}, "[0 1 0 1]"},
		{[]int{0, 1}, "[1 1]"},
		{[]int{}, "[]"},
		{[]int{0}, "[]"},
	} {
		var turn Turn
		n := len(c.want) / 2
		testkit.Equal(t, fmt.Sprint(c.weights), fmt.Sprint(take(t, &turn, Of(c.weights...), n, every)), c.want)
	}
}

// In each cycle, a class comes as often as it weighs, wherever it begins.
func TestACycleHasEachClassByItsWeight(t *testing.T) {
	w := Of(16, 8, 4, 2, 1)
	for start := range 31 {
		var turn Turn
		take(t, &turn, w, start, every)
		counts := make([]int, 5)
		for _, class := range take(t, &turn, w, 31, every) {
			counts[class]++
		}
		testkit.Equal(t, fmt.Sprint("from ", start), fmt.Sprint(counts), "[16 8 4 2 1]")
	}
}

// Whatever is ready gets all turns of what is not, by its weights.
func TestNoTurnIsLost(t *testing.T) {
	w := Of(4, 2, 1)
	var turn Turn
	testkit.Equal(t, "the last alone", fmt.Sprint(take(t, &turn, w, 3, func(class int) bool { return class == 2 })), "[2 2 2]")
	counts := make([]int, 3)
	for _, class := range take(t, &turn, w, 60, func(class int) bool { return class > 0 }) {
		counts[class]++
	}
	testkit.Equal(t, "the last two", fmt.Sprint(counts), "[0 40 20]")
	testkit.Equal(t, "none", len(take(t, &turn, w, 1, func(int) bool { return false })), 0)
}

// The weights may change at any time: from the next cycle on all come by the new ones.
func TestWeightsChangeWhileTurnsGoOn(t *testing.T) {
	for start := range 40 {
		var turn Turn
		take(t, &turn, Of(30, 7, 1), start, every)
		w := Of(1, 5)
		take(t, &turn, w, 6, every)
		counts := make([]int, 2)
		for _, class := range take(t, &turn, w, 6, every) {
			counts[class]++
		}
		testkit.Equal(t, fmt.Sprint("from ", start), fmt.Sprint(counts), "[1 5]")
	}
}
