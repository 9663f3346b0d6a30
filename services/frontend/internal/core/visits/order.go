package visits

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Order is a random order of some weights, at least 1 each: which of them comes first is by weight, also among any part of them, such as those that have
// work. So it needs no memory of what was served, and many frontends and polls under way at once need not agree.
//
// Each waits for a time of its own, which is exponential with its weight as the rate, and the first of those with work is served.
func Order(dice *rand.Rand, weights []int) []int {
	order, waits := make([]int, len(weights)), make([]float64, len(weights))
	for i, w := range weights {
		order[i], waits[i] = i, dice.ExpFloat64()/float64(w)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(waits[a], waits[b]) })
	return order
}
