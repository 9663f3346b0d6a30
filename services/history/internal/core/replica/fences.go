package replica

import (
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
	// epoch is that of the newest fence; 0 = there was none.
	epoch uint64
	// owners are the deliveries of each owner, by epoch.
	owners []*deliveries
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
	case h.from.epoch < h.from.shard.epoch:
		r.overtaken(h, fx)
		return
	case h.from.epoch > h.from.shard.epoch:
		h.from.shard.raise(h.from.epoch)
	}
	r.conclude(h, taskstate.Verdict{}, fx)
}

func (s *shard) raise(epoch uint64) {
	s.epoch = epoch
	if len(s.owners) > ownersMax {
		s.owners = slices.DeleteFunc(s.owners, func(d *deliveries) bool { return d.first == nil && d.epoch < epoch })
	}
}

// ownersMax is how many owners of a shard are remembered that have delivered everything.
const ownersMax = 16

// overtaken refuses a grab, a hand-back or a fence of an owner that a newer one has fenced.
func (r *Replica) overtaken(h *held, fx *Effects) {
	fx.Counts.Refused++
	if h.ans != nil {
		out := h.ans.Verdict(h.i)
		out.Fenced = true
	}
	r.conclude(h, taskstate.Verdict{Code: fault.Stale, Message: "the matching shard has a newer owner"}, fx)
}

// Overtaken tells whether a newer owner of a matching shard, by its number, has fenced the one of an epoch.
func (r *Replica) Overtaken(number int, epoch uint64) bool {
	s := r.shards[uint32(number)+1]
	return s != nil && s.epoch > epoch
}
