package replica

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// groupRef is a place in the effects of a turn.
type groupRef struct {
	turn uint64
	i    int
}

// trigger tells matching that e is ready.
func (r *Replica) trigger(e *Entry, now Now, fx *Effects) {
	if r.replay != nil {
		return
	}
	r.sentNow(e, now)
	at := &e.column.triggers
	if at.turn != r.turn || fx.Triggers[at.i].full(e.ReadyAt) {
		*at = groupRef{r.turn, len(fx.Triggers)}
		fx.Triggers = append(fx.Triggers, TriggerBatch{
			Shard: e.column.list.shard, Domain: e.Domain, Tasklist: e.Tasklist, Type: e.Type, Priority: e.Priority, ReadyAt: e.ReadyAt,
		})
	}
	g := &fx.Triggers[at.i]
	g.Packed = ids.AppendTrigger(g.Packed, e.Trigger())
	fx.Counts.Triggers++
	if len(e.Trace) > 0 {
		fx.Traced = append(fx.Traced, Traced{What: TraceTriggered, Task: &e.Task, Since: now.MS})
	}
}

// groupTriggers is how many triggers matching stores together, under one age. A group may have more
// where all are of the same age.
const groupTriggers = 128

// full tells whether a task that became ready at a time must begin another group.
func (g *TriggerBatch) full(readyAt int64) bool {
	return len(g.Packed) >= groupBytesMax || len(g.Packed)%(groupTriggers*ids.TriggerBytes) == 0 && readyAt != g.ReadyAt
}

// groupBytesMax bounds one group of triggers or releases, which must fit into a message.
const groupBytesMax = 256 << 10

// releaseKey is what the attempts of a group have in common.
type releaseKey struct {
	shard                  int
	domain, taskType, path string
}

// release tells matching that the slots of an attempt are free.
func (r *Replica) release(e *Entry, did *taskstate.Effects, fx *Effects) {
	key := releaseKey{e.column.list.shard, e.Domain, e.Type, did.Release.String()}
	i, ok := r.releases[key]
	if !ok || len(fx.Releases[i].Packed) >= groupBytesMax {
		i = len(fx.Releases)
		r.releases[key] = i
		fx.Releases = append(fx.Releases, ReleaseGroup{Shard: key.shard, Domain: e.Domain, Type: e.Type, Limits: did.Release})
	}
	g := &fx.Releases[i]
	g.Packed = append(g.Packed, ids.Booking(e.ID, did.ReleaseVersion)...)
}
