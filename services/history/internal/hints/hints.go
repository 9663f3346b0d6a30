// Package hints tells matching what is ready, and which slots are free.
//
// Owns: how triggers and releases of a turn become messages, by matching shard, and how large these are. Never does: decide what is sent, or wait. On failure:
// what is ready is triggered again in time; messages with releases are sent until they are stored.
package hints

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
)

// Wire sends messages.
type Wire interface {
	// Publish sends a message that may be lost, Store one until its stream has it.
	Publish(subject string, data []byte)
	Store(subject string, data []byte)
}

// bytesMax bounds one message.
const bytesMax = 400 << 10

// gathered are triggers and releases that become messages, by shard.
type gathered struct {
	wire   Wire
	shards []logv1.Hints
	sizes  []int
}

// Send sends triggers and releases to so many matching shards.
func Send(wire Wire, shards int, triggers []dispatch.TriggerBatch, releases []dispatch.ReleaseGroup) {
	h := gathered{wire, make([]logv1.Hints, shards), make([]int, shards)}
	for i := range releases {
		g := &releases[i]
		h.room(g.Shard, len(g.Packed)+len(g.Domain)+len(g.Type)+len(g.Limits.String()))
		h.shards[g.Shard].Releases = append(h.shards[g.Shard].Releases, &logv1.SlotRelease{
			Domain: g.Domain, Type: g.Type, Limits: g.Limits.Refs(), Bookings: g.Packed,
		})
	}
	for i := range triggers {
		g := &triggers[i]
		h.room(g.Shard, g.Bytes())
		h.shards[g.Shard].Triggers = append(h.shards[g.Shard].Triggers, &logv1.TriggerBatch{
			Domain: g.Domain, Tasklist: g.Tasklist, TasklistPartition: g.Partition, Priority: g.Priority, Type: g.Type, ReadyAtUs: g.ReadyAt * 1000, Triggers: g.Packed,
			Groups: g.Groups, GroupAt: g.GroupAt, Cost: g.Cost,
		})
	}
	for shard := range h.shards {
		h.publish(shard)
	}
}

// room publishes what a shard has if n bytes more would not fit.
func (h *gathered) room(shard, n int) {
	if h.sizes[shard] > 0 && h.sizes[shard]+n > bytesMax {
		h.publish(shard)
	}
	const overhead = 48
	h.sizes[shard] += n + overhead
}

func (h *gathered) publish(shard int) {
	if h.sizes[shard] == 0 {
		return
	}
	data, err := h.shards[shard].MarshalVT()
	if err != nil {
		panic("hints: " + err.Error()) // every field is of our making
	}
	send := h.wire.Publish // what is ready is triggered again in time
	if len(h.shards[shard].Releases) > 0 {
		send = h.wire.Store // the slots of a release that is lost stay taken until their attempts' deadline
	}
	send(topology.Matching(shard), data)
	h.shards[shard], h.sizes[shard] = logv1.Hints{}, 0
}
