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

// Weights are those of classes 0, 1, …
type Weights struct {
	weight []int
	// order are the classes that come, the heaviest first; most is its weight.
	order []int
	most  int
}

// Of makes the weights of classes; a class with weight 0 or less never comes.
func Of(weights ...int) (w Weights) {
	w.weight = weights
	for class, weight := range weights {
		if weight > 0 {
			w.order, w.most = append(w.order, class), max(w.most, weight)
		}
	}
	slices.SortStableFunc(w.order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	return w
}

// Turn is a place in the cycle. The zero value is its beginning, of any weights: they may change between two calls of Next.
type Turn struct {
	// level is that of the round, 0 = it begins with the next; at is how many classes of the round have come.
	level, at int
}

// Next is the next class that is ready, and the turn behind it; false if none is. A class that is not ready loses its turns until it is: the others
// have all of them. Ready may be asked for a class several times.
func (t Turn) Next(w Weights, ready func(class int) bool) (class int, after Turn, ok bool) {
	if t.level > w.most {
		t = Turn{} // the weights have changed
	}
	for range 2*w.most + 1 { // the rest of this round, and all others once
		if t.level == 0 {
			t = Turn{level: w.most}
		}
		for t.at < len(w.order) && w.weight[w.order[t.at]] >= t.level && t.level > 0 {
			class = w.order[t.at]
			if t.at++; ready(class) {
				return class, t, true
			}
		}
		t = Turn{level: t.level - 1}
	}
	return 0, t, false
}
