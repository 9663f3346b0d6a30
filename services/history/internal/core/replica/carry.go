package replica

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/window"
)

const (
	// carryTasksMax and carryBytesMax bound what is carried forward at once.
	carryTasksMax = 1000
	carryBytesMax = 4 << 20
	// carryEveryMS is how often it is looked whether there is something to carry, at least.
	carryEveryMS = 10_000
)

// carry proposes to rewrite the state of tasks that have been active for long at the log's
// tail, if a takeover would have too much to read because of them. A carried record takes over
// the pin of its task when it is read, if no other event of the task lies between what
// its state has seen and itself; else it is void, and proposed again later.
func (r *Replica) carry(fx *Effects) {
	events, bytes := r.meter.behind(r.floor())
	eventsTo := uint64(0)
	// The carried records are events themselves: twice what they take is always allowed, or
	// many of them would be rewritten forever.
	own := uint64(0)
	for _, e := range r.pinned {
		own += uint64(e.Footprint())
	}
	if events > max(r.cfg.CarryRecords, 2*uint64(len(r.pinned))) || bytes > max(r.cfg.CarryBytes, 2*own) {
		eventsTo = r.meter.half()
	}
	submitsTo := make(map[*window.Lane]uint64)
	long := func(l *window.Lane) {
		tasks, size := l.Span()
		if uint64(tasks) > max(r.cfg.CarryRecords, 2*uint64(r.cfg.WindowTasks)) || uint64(size) > max(r.cfg.CarryBytes, 2*uint64(r.cfg.WindowBytes)) {
			submitsTo[l] = l.Half()
		}
	}
	for _, l := range r.lanes {
		long(l)
	}
	for _, q := range r.queues {
		long(q.window)
	}
	if eventsTo == 0 && len(submitsTo) == 0 {
		return
	}
	size := 0
	for _, e := range r.oldest(eventsTo, submitsTo) {
		if size += e.Footprint(); size > carryBytesMax {
			break
		}
		e.proposed |= 1 << taskstate.Carried
		state := e.Task
		state.Steps = slices.Clone(e.Steps)
		r.own = append(r.own, Proposal{Kind: taskstate.Carried, ID: e.ID, Domain: e.Domain, Fence: ids.Token{Position: e.Position}, Carried: &state, AsOf: r.eventAt, Granted: e.grantedBy()})
		fx.Counts.Carried++
	}
}

// oldest are the active tasks that hold the log below the levels, the oldest first.
func (r *Replica) oldest(eventsTo uint64, submitsTo map[*window.Lane]uint64) []*Entry {
	var all []*Entry
	for _, e := range r.tasks {
		active := e.State == taskstate.Ready || e.State == taskstate.Running || e.State == taskstate.Backoff
		if !active || e.left || e.proposed&(1<<taskstate.Carried) != 0 {
			continue
		}
		if r.pinOf(e) < eventsTo || !e.pinned && e.Position.Seq() < submitsTo[r.windowOf(e)] {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(r.pinOf(a), r.pinOf(b)), cmp.Compare(a.Position.Seq(), b.Position.Seq()),
			cmp.Compare(a.index, b.index), slices.Compare(a.ID[:], b.ID[:]))
	})
	return all[:min(len(all), carryTasksMax)]
}

// pinOf is the event floor that e needs.
func (r *Replica) pinOf(e *Entry) uint64 {
	if e.pinned {
		return e.pin
	}
	floor, _ := r.windowOf(e).FloorOf(e.Position.Seq())
	return floor
}

// carriedPresent takes in the carried record of a task in memory.
func (r *Replica) carriedPresent(e *Entry, h *held, fx *Effects) {
	e.proposed &^= 1 << taskstate.Carried
	r.conclude(h, taskstate.Verdict{}, fx)
	asOf := h.carried.AsOf
	if e.State.Finished() || e.State == taskstate.Waiting || e.lastEvent > asOf || e.since > asOf || asOf >= h.seq {
		return
	}
	if !e.pinned {
		r.windowOf(e).Done(e.Position.Seq())
		e.pinned = true
		r.pinned[e.ID] = e
	}
	e.pin = max(e.pin, asOf) // one that was stored twice may come late: what it needs may be purged
	r.charge(e)
}

// carriedAbsent takes in the carried record of a stay that is not in memory; old is what is
// there of the task, an earlier stay or nothing. In a takeover the stay comes back by the record,
// unless that is void: another event follows what it has seen, or the checkpoint needs
// nothing from before its floor; or its submit is in memory all the same, and waits for the stay before.
func (r *Replica) carriedAbsent(h *held, old *Entry, now Now, fx *Effects) {
	r.conclude(h, taskstate.Verdict{}, fx)
	c := h.carried
	if r.replay == nil || c.AsOf < r.base.Floor || r.replay.seen[h.ev.ID] > c.AsOf || r.unread(h.ev.Fence.Position, c.Entry.Domain) || c.AsOf >= h.seq || r.isHeld(h.ev.ID, h.ev.Fence.Position) {
		return
	}
	if old != nil && !old.left {
		if old.lastEvent > c.AsOf {
			return
		}
		delete(r.tasks, old.ID)
		r.leave(old)
	}
	e := c.Entry
	e.pinned, e.pin, e.shared = true, c.AsOf, e.Position.Shared()
	e.since, e.lastEvent = c.AsOf, c.AsOf
	r.tasks[e.ID], r.pinned[e.ID] = e, e
	r.enqueue(e)
	r.grantedTo(e, uint32(e.Attempt.Shard))
	r.carryOut(e, taskstate.Effects{}, 0, now, fx)
	r.grantedBefore(e, c.Granted)
	// The state has seen what came before it of this stay, and the commands: any later one would have made it void.
	for _, h := range r.early.take(e.ID) {
		if pos := h.ev.Fence.Position; !h.command() && !pos.Same(e.Position) {
			r.early.add(h)
		}
	}
}
