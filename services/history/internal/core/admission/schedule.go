package admission

import (
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
	// apart are the domains that are split off each lane, the one whose turn it is first. OwnTurn: they come before the lane itself.
	apart   [ids.Lanes][]*queue
	ownTurn [ids.Lanes]bool
}

// NextQueue is the queue whose message is read next, of those that are ready: lanes by the weights of their priorities, in the order of package iwrr; and
// in a lane its own messages and those of the domains that are split off by turns, these in turn between themselves. So a domain
// that floods has half of what its lane has at most, while others have something there.
func (g *Gate) NextQueue(ready func(Queue) bool) (at Queue, ok bool) {
	s := &g.schedule
	var found [ids.Lanes]struct {
		asked, any bool
		at         Queue
		nth        int // among those apart; -1 = it is the lane itself
	}
	lane, after, ok := s.lanes.Next(laneWeights, func(lane int) bool {
		f := &found[lane]
		if !f.asked {
			f.asked = true
			f.at, f.nth, f.any = s.nextOf(ids.Lane(lane), ready)
		}
		return f.any
	})
	if !ok {
		return Queue{}, false
	}
	s.lanes = after
	f := &found[lane]
	if s.ownTurn[lane] = f.nth < 0; f.nth >= 0 {
		all := s.apart[lane]
		q := all[f.nth]
		copy(all[f.nth:], all[f.nth+1:])
		all[len(all)-1] = q
	}
	return f.at, true
}

// nextOf is the queue of a lane that is next: one of those apart, by its place, or -1 for the lane itself.
func (s *schedule) nextOf(lane ids.Lane, ready func(Queue) bool) (at Queue, nth int, ok bool) {
	common := Queue{Lane: lane}
	if !s.ownTurn[lane] && ready(common) {
		return common, -1, true
	}
	for i, q := range s.apart[lane] {
		if ready(q.Queue) {
			return q.Queue, i, true
		}
	}
	return common, -1, s.ownTurn[lane] && ready(common)
}
