package replica

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// ShardFence is the epoch below which what the owners of a matching shard say is void. Shard is its number
// plus one, as in the log.
type ShardFence struct {
	Shard uint32
	Epoch uint64
}

// shard is what the log says of one matching shard: which of its owners is the newest, and
// what they may not have delivered.
type shard struct {
	number uint32
	// raised are the fences that raised the epoch, in log order, back to the last one up to the saved
	// floor: a takeover begins with that one, and reads the later ones again.
	raised []raisedTo
	// owners are the deliveries of each owner, by epoch.
	owners []*deliveries
}

type raisedTo struct{ seq, epoch uint64 }

// epoch is that of the newest fence; 0 = there was none.
func (s *shard) epoch() uint64 {
	if n := len(s.raised); n > 0 {
		return s.raised[n-1].epoch
	}
	return 0
}

// upTo is the newest epoch as of an event.
func (s *shard) upTo(seq uint64) (epoch uint64) {
	for _, f := range s.raised {
		if f.seq <= seq {
			epoch = f.epoch
		}
	}
	return epoch
}

// shardOf is the shard with a number of the log.
func (r *Replica) shardOf(number uint32) *shard {
	s := r.shards[number]
	if s == nil {
		s = &shard{number: number}
		r.shards[number] = s
	}
	return s
}

// fenced decides about a fence: it counts unless a newer one was there before. A fence of the
// present epoch is a repetition.
func (r *Replica) fenced(h *held, fx *Effects) {
	switch {
	case h.from == nil:
		r.conclude(h, taskstate.Verdict{Code: fault.InvalidArgument, Message: "a fence of no shard"}, fx)
		return
	case h.from.epoch < h.from.shard.epoch():
		r.overtaken(h, fx)
		return
	case h.from.epoch > h.from.shard.epoch():
		h.from.shard.raise(h.seq, h.from.epoch)
	}
	r.conclude(h, taskstate.Verdict{}, fx)
}

func (s *shard) raise(seq, epoch uint64) {
	s.raised = append(s.raised, raisedTo{seq, epoch})
	if len(s.owners) > ownersMax {
		s.owners = slices.DeleteFunc(s.owners, func(d *deliveries) bool { return d.live == 0 && d.epoch < epoch })
	}
}

// ownersMax is how many owners of a shard are remembered that have delivered everything.
const ownersMax = 16

// overtaken refuses a grab, a hand-back or a fence of an owner that a newer one has fenced.
func (r *Replica) overtaken(h *held, fx *Effects) {
	fx.Counts.Refused++
	if h.ans != nil {
		out, _ := h.ans.verdict(h.i)
		out.Fenced = true
	}
	r.conclude(h, taskstate.Verdict{Code: fault.Stale, Message: "the matching shard has a newer owner"}, fx)
}

// Overtaken tells whether a newer owner of a matching shard, by its number, has fenced the one of an epoch.
func (r *Replica) Overtaken(number int, epoch uint64) bool {
	s := r.shards[uint32(number)+1]
	return s != nil && s.epoch() > epoch
}

// fencesUpTo are the fences as of an event, by shard.
func (r *Replica) fencesUpTo(seq uint64) (all []ShardFence) {
	for _, s := range r.shards {
		if epoch := s.upTo(seq); epoch > 0 {
			all = append(all, ShardFence{s.number, epoch})
		}
	}
	slices.SortFunc(all, func(a, b ShardFence) int { return cmp.Compare(a.Shard, b.Shard) })
	return all
}

// forgetFences lets go of the fences before the last one up to the saved floor.
func (r *Replica) forgetFences() {
	for _, s := range r.shards {
		for len(s.raised) > 1 && s.raised[1].seq <= r.base.Floor {
			s.raised = s.raised[1:]
		}
	}
}
