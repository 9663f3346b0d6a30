package backlog

import (
	"cmp"
	"slices"
)

// inTurn puts the first of each domain in front, then the second of each, and so on. Of the same place they stay in order.
func inTurn[T any](all []T, domain func(T) string) {
	type placed struct {
		T     T
		place int
	}
	seen, some := map[string]int{}, make([]placed, len(all))
	for i, one := range all {
		some[i] = placed{one, seen[domain(one)]}
		seen[domain(one)]++
	}
	if len(seen) < 2 {
		return
	}
	slices.SortStableFunc(some, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	for i, one := range some {
		all[i] = one.T
	}
}
