package table

import "github.com/yardmaster-io/yardmaster/shared/iwrr"

// priorityWeights are those of the priorities: each comes twice as often as the next less urgent one while both have something ready, so
// the last one has one in 31 turns however many urgent triggers come. PriorityIdle has no turn.
var priorityWeights = iwrr.Of(16, 8, 4, 2, 1)

// Turn is a place in the turns of the priorities. The zero value is the beginning.
type Turn struct{ at iwrr.Turn }

// Next is the next priority that is ready, and the turn behind it; 0 if none but PriorityIdle is.
func (t Turn) Next(ready func(priority int) bool) (priority int, after Turn) {
	class, at, ok := t.at.Next(priorityWeights, func(class int) bool { return ready(PriorityFirst + class) })
	if !ok {
		return 0, t
	}
	return PriorityFirst + class, Turn{at}
}
