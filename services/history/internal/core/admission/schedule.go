package admission

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/iwrr"
)

// laneWeights are those of the lanes: of the priorities each comes twice as often as the next less urgent one. Delayed tasks, and
// those with an order key, are of all priorities.
var laneWeights = iwrr.Of(8, 16, 8, 4, 2, 1, 8)

// schedule says which queue is read next. It decides only in which order messages come in that could all come in now, and what it decided is
// in the steps: its own state is not kept.
type schedule struct {
	lanes iwrr.Turn
	of    [ids.Lanes]laneSchedule
	// reads counts what was read of queues.
	reads uint64
}

// laneSchedule is that of one lane and its queues.
type laneSchedule struct {
	// own: it is the turn of the lane itself. Else it is that of one of the domains that have queues, whose weights were these.
	own     bool
	apart   []*domain
	turn    iwrr.Turn
	weights []int
	order   iwrr.Weights
}

// NextQueue is the queue whose message is read next, of those that are ready: lanes by the weights of their priorities, in the order of package iwrr;
// in a lane its own messages and those of its queues by turns, these by the weights of their domains; and the queues of one domain by turns. So
// domains that flood have half of what their lane has at most, while others have something there.
func (g *Gate) NextQueue(ready func(Queue) bool, weight func(domain string) int) (at Queue, ok bool) {
	s := &g.schedule
	var next [ids.Lanes]struct {
		asked, any bool
		at         Queue
		after      laneSchedule
	}
	lane, after, ok := s.lanes.Next(laneWeights, func(lane int) bool {
		n := &next[lane]
		if !n.asked {
			n.asked, n.after = true, s.of[lane]
			n.at, n.any = n.after.next(ids.Lane(lane), ready, weight)
		}
		return n.any
	})
	if !ok {
		return Queue{}, false
	}
	s.lanes, s.of[lane] = after, next[lane].after
	if q := g.queues[next[lane].at]; q != nil {
		s.reads++
		q.readAt = s.reads
	}
	return next[lane].at, true
}

// next is the queue of a lane that is next.
func (s *laneSchedule) next(lane ids.Lane, ready func(Queue) bool, weight func(domain string) int) (at Queue, ok bool) {
	lanes := Queue{Lane: lane}
	if len(s.apart) == 0 {
		return lanes, ready(lanes)
	}
	if s.own = !s.own; s.own && ready(lanes) {
		return lanes, true
	}
	some, longest, weights := false, make([]*queue, len(s.apart)), make([]int, len(s.apart))
	for i, d := range s.apart {
		longest[i], weights[i] = d.longest(ready), weight(d.Name)
		some = some || longest[i] != nil
	}
	if !some {
		s.own = true
		return lanes, ready(lanes)
	}
	if !slices.Equal(weights, s.weights) {
		s.weights, s.order = weights, iwrr.Of(weights...)
	}
	s.own = false
	i, after, _ := s.turn.Next(s.order, func(i int) bool { return longest[i] != nil })
	s.turn = after
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
