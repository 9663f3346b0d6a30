package simulation

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// fenced is a fence of a matching shard.
type fenced struct{ seq, epoch uint64 }

// epochAt is the newest epoch of a shard that has fenced before an event.
func (c *checker) epochAt(shard uint32, seq uint64) (epoch uint64) {
	for _, f := range c.fences[shard] {
		if f.seq < seq {
			epoch = max(epoch, f.epoch)
		}
	}
	return epoch
}

// fencing holds that owners of matching shards are refused behind the fence of a newer one, and only they.
func (c *checker) fencing(m *historysim.Message, e *historysim.Event, v *historysim.Verdict) {
	epoch := c.epochAt(m.Shard, m.Seq)
	late := m.Shard > 0 && slices.Contains([]historysim.Kind{historysim.Started, historysim.Released, historysim.Fence}, e.Kind) && m.Epoch < epoch
	if v.Fenced != late || late && v.Code != fault.Stale {
		c.w.violated("R41: %v of %s of epoch %d at event %d, behind the fence of epoch %d, gets %q, fenced %v",
			e.Kind, c.w.name(e.ID), m.Epoch, m.Seq, epoch, v.Code, v.Fenced)
	}
}
