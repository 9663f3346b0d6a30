package dispatch

import (
	"encoding/binary"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Trigger tells matching that e is ready, unless its order key holds it up.
func (x *Lists) Trigger(e *Entry, nowMS int64, fx *Effects) {
	if e.HeldUp() {
		return
	}
	x.relocate(e)
	x.sentNow(e, nowMS)
	at := &e.column.pack.packRef
	if at.turn != x.turn || fx.Triggers[at.i].full(e.ReadySince()) {
		*at = packRef{x.turn, len(fx.Triggers)}
		fx.Triggers = append(fx.Triggers, TriggerBatch{
			Shard: e.column.pack.shard, Partition: e.column.key.partition, Domain: e.Domain, Tasklist: e.Tasklist, Type: e.Type, Priority: e.Priority, Cost: e.Cost(), ReadyAt: e.ReadySince(),
		})
	}
	g := &fx.Triggers[at.i]
	x.group(g, at.i, e.Group())
	g.Packed = ids.AppendTrigger(g.Packed, e.Trigger())
	fx.Sent++
	if len(e.Trace) > 0 {
		fx.TracedTriggers = append(fx.TracedTriggers, e.Task)
	}
}

// group notes the group of the next trigger of a batch, the i-th of the turn.
func (x *Lists) group(b *TriggerBatch, i int, name string) {
	if name == "" {
		if b.Groups != nil {
			b.GroupAt = append(b.GroupAt, 0)
		}
		return
	}
	if b.Groups == nil {
		b.GroupAt = make([]byte, len(b.Packed)/ids.TriggerBytes)
	}
	key := groupKey{i, name}
	at, ok := x.groups[key]
	if !ok {
		b.Groups = append(b.Groups, name)
		b.names += len(name) + 2
		at = uint64(len(b.Groups))
		x.groups[key] = at
	}
	b.GroupAt = binary.AppendUvarint(b.GroupAt, at)
}

// full tells whether a task that became ready at a time must begin another batch.
func (g *TriggerBatch) full(readyAt int64) bool {
	return g.triggerBytes() >= PackBytesMax || len(g.Packed)%(PackTriggers*ids.TriggerBytes) == 0 && readyAt != g.ReadyAt
}

// PackBytesMax bounds one batch of triggers or group of releases, which must fit into a message.
const PackBytesMax = 256 << 10

// Release tells the shard that an attempt was granted to that its slots are free.
func (x *Lists) Release(e *Entry, did *taskstate.Effects, fx *Effects) {
	key := releaseKey{e.attemptShard(), e.Domain, e.Type, did.Release.String()}
	i, ok := x.releases[key]
	if !ok || len(fx.Releases[i].Packed) >= PackBytesMax {
		i = len(fx.Releases)
		x.releases[key] = i
		fx.Releases = append(fx.Releases, ReleaseGroup{Shard: key.shard, Domain: e.Domain, Type: e.Type, Limits: did.Release})
	}
	g := &fx.Releases[i]
	g.Packed = append(g.Packed, ids.Booking(e.ID, did.ReleaseVersion)...)
}
