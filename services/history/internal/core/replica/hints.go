package replica

import (
	"encoding/binary"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// packRef is a place in the effects of a turn.
type packRef struct {
	turn uint64
	i    int
}

// trigger tells matching that e is ready, unless its order key holds it up.
func (r *Replica) trigger(e *Entry, now Now, fx *Effects) {
	if r.replay != nil || e.HeldUp() {
		return
	}
	r.relocate(e)
	r.sentNow(e, now)
	at := &e.column.pack.packRef
	if at.turn != r.turn || fx.Triggers[at.i].full(e.inLineSince()) {
		*at = packRef{r.turn, len(fx.Triggers)}
		fx.Triggers = append(fx.Triggers, TriggerBatch{
			Shard: e.column.pack.shard, Partition: e.column.key.partition, Domain: e.Domain, Tasklist: e.Tasklist, Type: e.Type, Priority: e.Priority, Cost: e.Cost(), ReadyAt: e.inLineSince(),
		})
	}
	g := &fx.Triggers[at.i]
	r.group(g, at.i, e.Group())
	g.Packed = ids.AppendTrigger(g.Packed, e.Trigger())
	fx.Counts.Triggers++
	if len(e.Trace) > 0 {
		fx.Traced = append(fx.Traced, Traced{What: TraceTriggered, Task: &e.Task, Since: now.MS})
	}
}

// groupKey is a group of tasks in one of the effects of a turn.
type groupKey struct {
	i    int
	name string
}

// group notes the group of the next trigger of a batch, the i-th of the turn.
func (r *Replica) group(b *TriggerBatch, i int, name string) {
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
	at, ok := r.groups[key]
	if !ok {
		b.Groups = append(b.Groups, name)
		b.names += len(name) + 2
		at = uint64(len(b.Groups))
		r.groups[key] = at
	}
	b.GroupAt = binary.AppendUvarint(b.GroupAt, at)
}

// packTriggers is how many triggers matching stores together, under one age. A batch may have more
// where all are of the same age.
const packTriggers = 128

// full tells whether a task that became ready at a time must begin another batch.
func (g *TriggerBatch) full(readyAt int64) bool {
	return g.triggerBytes() >= packBytesMax || len(g.Packed)%(packTriggers*ids.TriggerBytes) == 0 && readyAt != g.ReadyAt
}

// packBytesMax bounds one batch of triggers or group of releases, which must fit into a message.
const packBytesMax = 256 << 10

// releaseKey is what the attempts of a group have in common.
type releaseKey struct {
	shard                  int
	domain, taskType, path string
}

// release tells the shard that an attempt was granted to that its slots are free.
func (r *Replica) release(e *Entry, did *taskstate.Effects, fx *Effects) {
	key := releaseKey{e.heldAt(), e.Domain, e.Type, did.Release.String()}
	i, ok := r.releases[key]
	if !ok || len(fx.Releases[i].Packed) >= packBytesMax {
		i = len(fx.Releases)
		r.releases[key] = i
		fx.Releases = append(fx.Releases, ReleaseGroup{Shard: key.shard, Domain: e.Domain, Type: e.Type, Limits: did.Release})
	}
	g := &fx.Releases[i]
	g.Packed = append(g.Packed, ids.Booking(e.ID, did.ReleaseVersion)...)
}
