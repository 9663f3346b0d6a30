package dispatch

import (
	"cmp"
	"encoding/binary"
	"slices"

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
	x.nameGroup(g, at.i, e.Group())
	g.Packed = ids.AppendTrigger(g.Packed, e.Trigger())
	fx.Sent++
	if len(e.Trace) > 0 {
		fx.TracedTriggers = append(fx.TracedTriggers, e.Task)
	}
}

// nameGroup notes the group of the next trigger of a batch, the i-th of the turn.
func (x *Lists) nameGroup(b *TriggerBatch, i int, name string) {
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

const (
	// HealEveryMS is how often the tasks in memory are looked through for lost triggers, HealMax how many of them, and
	// of their tasklists, at one tick.
	HealEveryMS = 5000
	HealMax     = 5000
	// MissingMax bounds what one hint triggers again, missingLooksMax what it looks at. More is asked for again.
	MissingMax, missingLooksMax = 5000, 20_000
	// MissingAgeMS spares triggers that are still on their way.
	MissingAgeMS = 2000
	// PassedOverMS is how much later another task must have become ready, to say that this one was passed over and not
	// just granted out of order.
	PassedOverMS = 3000
	// OldAgeMS is when a ready task is triggered again without being asked for.
	OldAgeMS = 5 * 60_000
)

// sentEarlier tells whether the trigger of e was sent so long ago, or by a clock that has been put back since.
func (e *Entry) sentEarlier(age, nowMS int64) bool {
	return e.triggeredAt < nowMS-age || e.triggeredAt > nowMS
}

// Heal re-sends the triggers of tasks that others of their column have overtaken, and of what has been ready for long
// whatever the reason (I5). While polls are fed with other tasks no one is hungry, so no one else would notice.
func (x *Lists) Heal(nowMS int64, fx *Effects) {
	s := &x.sweep
	if !s.running {
		if nowMS < s.beginsAt {
			return
		}
		*s = sweep{beginsAt: nowMS + HealEveryMS, running: true, list: -1}
	}
	var lost []*Entry
	for range HealMax {
		e := s.next
		if e == nil || !e.sentEarlier(MissingAgeMS+PassedOverMS, nowMS) {
			if s.list++; s.list >= len(x.order) {
				s.running = false
				break
			}
			s.next = x.order[s.list].sent.first
			continue
		}
		s.next = e.after
		if e.ReadySince() < e.column.grantedReadyAt-PassedOverMS || e.sentEarlier(OldAgeMS, nowMS) {
			lost = append(lost, e)
		}
	}
	x.retrigger(lost, nowMS, fx)
}

// Missing re-sends the triggers of a tasklist that were not sent recently: its pollers have nothing to do. Matching has
// those of the types that are present: copies of them would only pile up there (R33). It costs what it sends again, and
// a look at what is present.
func (x *Lists) Missing(domain, name string, present []string, nowMS int64, fx *Effects) {
	l, ok := x.lists[tasklistKey{domain, name}]
	if !ok {
		return
	}
	there := make(map[string]bool, len(present))
	for _, typ := range present {
		there[typ] = true
	}
	var lost []*Entry
	looks := 0
	for e := l.sent.first; e != nil && len(lost) < MissingMax && looks < missingLooksMax && e.sentEarlier(MissingAgeMS, nowMS); e = e.after {
		looks++
		if !there[e.column.key.taskType] {
			lost = append(lost, e)
		}
	}
	x.retrigger(lost, nowMS, fx)
}

// Retrigger re-sends the triggers of all that is ready in the partitions of one shard, or of all of them if shard is
// negative: those of one domain, or of all if none is named. It spares none that was sent a moment ago: who asks has
// lost what it had, or a connection broke, and a trigger that was taken in before that is lost as well.
func (x *Lists) Retrigger(domain string, shard int, nowMS int64, fx *Effects) int {
	var all []*Entry
	for _, l := range x.order {
		if domain != "" && l.key.domain != domain || shard >= 0 && l.shard != shard && !l.spread {
			continue
		}
		for e := l.sent.first; e != nil; e = e.after {
			if shard < 0 || e.column.pack.shard == shard {
				all = append(all, e)
			}
		}
	}
	return x.retrigger(all, nowMS, fx)
}

// retrigger re-sends triggers.
func (x *Lists) retrigger(lost []*Entry, nowMS int64, fx *Effects) int {
	slices.SortFunc(lost, Compare)
	for _, e := range lost {
		x.Trigger(e, nowMS, fx)
	}
	fx.Resent += int64(len(lost))
	return len(lost)
}

// Compare orders tasks as they became ready, those of one message in its order: a reader that gets them again must not
// see them shuffled.
func Compare(a, b *Entry) int {
	if a.ReadyAt != b.ReadyAt {
		return cmp.Compare(a.ReadyAt, b.ReadyAt)
	}
	return cmp.Or(
		cmp.Compare(a.Position.Seq(), b.Position.Seq()),
		cmp.Compare(a.Index, b.Index),
		slices.Compare(a.ID[:], b.ID[:]),
	)
}
