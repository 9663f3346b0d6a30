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

// BeginTurn finds out which priority goes first in a call that takes triggers; 0 = the most urgent does: no other has anything
// ready, or it is to be strict.
func (x *Index) BeginTurn(strict func() bool) (first int) {
	x.after = x.turn
	if x.mixed() && !strict() {
		first, x.after = x.turn.Next(x.has)
	}
	return first
}

// EndTurn notes that the call has taken some triggers, of whatever priority: those of the one whose turn it was may be
// paused, or of a limit that is full.
func (x *Index) EndTurn() { x.turn = x.after }

// has tells whether the table holds something of a priority.
func (x *Index) has(priority int) bool {
	for c := range x.from(priority) {
		return c.Priority == priority
	}
	return false
}

// mixed tells whether it holds something of several priorities. PriorityIdle does not count: it waits for all others.
func (x *Index) mixed() bool {
	if len(x.blocks) == 0 {
		return false
	}
	for c := range x.from(x.blocks[0][0].Priority + 1) {
		return c.Priority <= PriorityLast
	}
	return false
}
