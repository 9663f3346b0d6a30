package replica

import "github.com/yardmaster-io/yardmaster/contracts/ids"

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
	if at.turn != r.turn || len(fx.Triggers[at.i].Packed) >= groupBytesMax {
		*at = groupRef{r.turn, len(fx.Triggers)}
		fx.Triggers = append(fx.Triggers, TriggerGroup{
			Shard: e.column.list.shard, Domain: e.Domain, Tasklist: e.Tasklist, Type: e.Type, Priority: e.Priority, ReadyAt: e.ReadyAt,
		})
	}
	g := &fx.Triggers[at.i]
	g.Packed = ids.AppendTrigger(g.Packed, e.Trigger())
	fx.Counts.Triggers++
	if len(e.Trace) > 0 {
		fx.Traced = append(fx.Traced, Traced{TraceTriggered, &e.Task, now.MS})
	}
}

// groupBytesMax bounds one group of triggers or releases, which must fit into a message.
const groupBytesMax = 256 << 10

// release tells matching that the slot of an attempt is free.
func (r *Replica) release(e *Entry, version uint32, fx *Effects) {
	at := &e.column.releases
	if at.turn != r.turn || len(fx.Releases[at.i].Packed) >= groupBytesMax {
		*at = groupRef{r.turn, len(fx.Releases)}
		fx.Releases = append(fx.Releases, ReleaseGroup{Shard: e.column.list.shard, Domain: e.Domain, Type: e.Type})
	}
	g := &fx.Releases[at.i]
	g.Packed = append(g.Packed, ids.Booking(e.ID, version)...)
}
