package admission

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/iwrr"
)

// laneWeights are those of the lanes: of the priorities each comes twice as often as the next less urgent one. Delayed tasks, and
// those with an order key, are of all priorities.
var laneWeights = iwrr.Of(8, 16, 8, 4, 2, 1, 8)

// classTurns is how many turns there are for each one of the low class. A class that has nothing ready leaves its turns to the other one.
const classTurns = 5

// schedule says which queue is read next. It decides only in which order messages come in that could all come in now, and what it decided is
// in the steps: its own state is not kept.
type schedule struct {
	*budgets
	// turn counts those of the classes.
	turn  int
	lanes [classes]iwrr.Turn
	of    [classes][ids.Lanes]laneSchedule
	// apart are the domains that have queues in a lane.
	apart [ids.Lanes][]*domain
	// reads counts what was read of queues.
	reads uint64
}

// laneSchedule is that of the queues of one class in one lane.
type laneSchedule struct {
	// own: the lane itself has had its turn, and it is that of one of the domains that have queues, whose weights were these.
	own     bool
	turn    iwrr.Turn
	weights []int
	order   iwrr.Weights
}

// NextQueue is the queue whose message is read next, of those that are ready: four times of five one of the full class; of a class lanes by the weights of
// their priorities, in the order of package iwrr; in a lane its own messages and those of its queues by turns, these by the weights of their domains; and
// the queues of one domain by turns. So domains that flood have half of what their lane has at most, while others have something there, and those that
// are over their rates a fifth of all.
func (g *Gate) NextQueue(ready func(Queue) bool, weight func(domain string) int) (at Queue, ok bool) {
	s := &g.schedule
	first, second := fullClass, lowClass
	if s.turn == classTurns-1 {
		first, second = second, first
	}
	if at, ok = s.nextOf(first, ready, weight); !ok {
		at, ok = s.nextOf(second, ready, weight)
	}
	if !ok {
		return Queue{}, false
	}
	s.turn = (s.turn + 1) % classTurns
	if q := g.queues[at]; q != nil {
		s.reads++
		q.readAt = s.reads
	}
	return at, true
}

// nextOf is the queue of a class that is next.
func (s *schedule) nextOf(c class, ready func(Queue) bool, weight func(domain string) int) (at Queue, ok bool) {
	if c == lowClass && len(s.left) == 0 {
		return Queue{}, false
	}
	var asked [ids.Lanes]bool
	_, after, ok := s.lanes[c].Next(laneWeights, func(lane int) (some bool) {
		if !asked[lane] {
			asked[lane] = true
			at, some = s.nextIn(ids.Lane(lane), c, ready, weight)
		}
		return some
	})
	if ok {
		s.lanes[c] = after
	}
	return at, ok
}

// nextIn is the queue of a class that is next in a lane. It has had its turn.
func (s *schedule) nextIn(lane ids.Lane, c class, ready func(Queue) bool, weight func(domain string) int) (at Queue, ok bool) {
	of, apart, lanes := &s.of[c][lane], s.apart[lane], Queue{Lane: lane}
	own := c == fullClass
	if len(apart) == 0 {
		return lanes, own && ready(lanes)
	}
	if own && !of.own && ready(lanes) {
		of.own = true
		return lanes, true
	}
	some, longest, weights := false, make([]*queue, len(apart)), make([]int, len(apart))
	for i, d := range apart {
		if s.class(d.Name) == c { // else its weight is 0
			longest[i], weights[i] = d.longest(ready), weight(d.Name)
			some = some || longest[i] != nil
		}
	}
	if !some {
		return lanes, own && of.own && ready(lanes)
	}
	if !slices.Equal(weights, of.weights) {
		of.weights, of.order = weights, iwrr.Of(weights...)
	}
	of.own = false
	i, after, _ := of.turn.Next(of.order, func(i int) bool { return longest[i] != nil })
	of.turn = after
	return longest[i].Queue, true
}

// longest is the queue of a domain that is ready and was not read for longest, or nil.
func (d *domain) longest(ready func(Queue) bool) (longest *queue) {
	for _, q := range d.queues {
		if ready(q.Queue) && (longest == nil || q.readAt < longest.readAt) {
			longest = q
		}
	}
	return longest
}
