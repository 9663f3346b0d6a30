// Package iwrr says which of some classes comes next, by interleaved weighted round robin.
//
// Owns: the order. Of weights 5, 3 and 1 the classes come as 0 0 0 1 0 1 0 1 2: a round for each level from the largest weight down to 1, and
// in each round every class whose weight is at least the level, the heaviest first. So a class with weight w comes w times in a cycle, spread over it,
// and one with the least weight comes in every cycle (Katevenis, Sidiropoulos and Courcoubetis, 1991; the order is that of Cadence's task scheduler).
// Never does: know what waits in a class, or who it belongs to. On failure: nothing can fail.
package iwrr

import (
	"cmp"
	"slices"
)

// Weights are those of classes 0, 1, …; a class with weight 0 or less never comes.
type Weights []int

// Turn is a place in the cycle. The zero value is its beginning, of any weights: they may change between two calls of Next.
type Turn struct {
	// level is that of the round, 0 = it begins with the next; at is how many classes of the round have come.
	level, at int
}

// Next is the next class that is ready, and the turn behind it; false if none is. A class that is not ready loses its turns until it is: the others
// have all of them.
func (t Turn) Next(w Weights, ready func(class int) bool) (class int, after Turn, ok bool) {
	order, most := w.order()
	if t.level > most {
		t = Turn{} // the weights have changed
	}
	for range 2*most + 1 { // the rest of this round, and all others once
		if t.level == 0 {
			t = Turn{level: most}
		}
		for t.at < len(order) && w[order[t.at]] >= t.level && t.level > 0 {
			class = order[t.at]
			if t.at++; ready(class) {
				return class, t, true
			}
		}
		t = Turn{level: t.level - 1}
	}
	return 0, t, false
}

// order are the classes, the heaviest first, and the largest weight.
func (w Weights) order() (order []int, most int) {
	for class, weight := range w {
		if weight > 0 {
			order, most = append(order, class), max(most, weight)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(w[b], w[a]) })
	return order, most
}
