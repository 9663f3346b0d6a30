package replica

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

type tasklistKey struct{ domain, tasklist string }

// tasklist counts the tasks of one tasklist in this partition.
type tasklist struct {
	key    tasklistKey
	shard  int
	active [taskstate.Cancelled + 1]int64
	// Ends since this owner took over.
	completed, dead int64
	columns         map[columnKey]*column
}

// column is the tasks of one type and priority of a tasklist: matching grants
// them in the order in which they became ready.
type column struct {
	// grantedReadyAt is the latest ReadyAt among those granted. A task that was ready well
	// before, and was not granted, has been overtaken: its trigger is lost.
	grantedReadyAt int64
	// Where its triggers and releases of a turn are gathered.
	triggers, releases groupRef
}

// groupRef is a place in the effects of a turn.
type groupRef struct {
	turn uint64
	i    int
}

type columnKey struct {
	taskType string
	priority int32
}

// lineUp files e under its tasklist and column.
func (r *Replica) lineUp(e *Entry) {
	key := tasklistKey{e.Domain, e.Tasklist}
	l, ok := r.lists[key]
	if !ok {
		l = &tasklist{
			key: key, shard: ids.MatchingShard(e.Domain, e.Tasklist, 0, r.cfg.Shards), columns: make(map[columnKey]*column),
		}
		r.lists[key] = l
	}
	e.list = l
	ck := columnKey{e.Type, e.Priority}
	if e.column, ok = l.columns[ck]; !ok {
		e.column = &column{}
		l.columns[ck] = e.column
	}
}

// recount moves e to the count of its current state.
func (e *Entry) recount() {
	if e.counted == e.State {
		return
	}
	if e.counted != taskstate.None {
		e.list.active[e.counted]--
	}
	e.counted = e.State
	if e.counted.Finished() {
		e.counted = taskstate.None
	}
	if e.counted != taskstate.None {
		e.list.active[e.counted]++
	}
}

func (e *Entry) uncount() {
	if e.counted != taskstate.None {
		e.list.active[e.counted]--
		e.counted = taskstate.None
	}
}

// ended counts a task that has ended, and tells who waits for it.
func (r *Replica) ended(e *Entry, fx *Effects) {
	switch e.State {
	case taskstate.Completed:
		e.list.completed++
	case taskstate.Dead:
		e.list.dead++
	}
	if r.replay == nil {
		fx.Ended = append(fx.Ended, e)
	}
}

// trigger tells matching that e is ready.
func (r *Replica) trigger(e *Entry, now Now, fx *Effects) {
	if r.replay != nil {
		return
	}
	e.triggeredAt = now.MS
	at := &e.column.triggers
	if at.turn != r.turn || len(fx.Triggers[at.i].Packed) >= groupBytesMax {
		*at = groupRef{r.turn, len(fx.Triggers)}
		fx.Triggers = append(fx.Triggers, TriggerGroup{
			Shard: e.list.shard, Domain: e.Domain, Tasklist: e.Tasklist, Type: e.Type, Priority: e.Priority, ReadyAt: e.ReadyAt,
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
		fx.Releases = append(fx.Releases, ReleaseGroup{Shard: e.list.shard, Domain: e.Domain, Type: e.Type})
	}
	g := &fx.Releases[at.i]
	g.Packed = append(g.Packed, ids.Booking(e.ID, version)...)
}

const (
	// healEveryMS is how often the tasks in memory are looked through for lost triggers.
	healEveryMS = 5000
	// hungryAgeMS spares triggers that are still on their way.
	hungryAgeMS = 2000
	// overtakenMS is how much later another task must have become ready, to say that
	// this one was passed over and not just granted out of order.
	overtakenMS = 3000
	// oldAgeMS is when a ready task is triggered again without being asked for.
	oldAgeMS = 5 * 60_000
)

// heal re-sends the triggers of tasks that others of their column have overtaken, and
// of what has been ready for long whatever the reason (I5). While polls are fed with other
// tasks nobody is hungry, so nobody else would notice.
func (r *Replica) heal(now Now, fx *Effects) {
	r.retrigger(now, fx, func(e *Entry) bool {
		overtaken := e.ReadyAt < e.column.grantedReadyAt-overtakenMS && e.triggeredAt < now.MS-hungryAgeMS-overtakenMS
		return overtaken || e.triggeredAt < now.MS-oldAgeMS
	})
}

// Hungry re-sends the triggers of a tasklist that were not sent lately: its pollers
// have nothing to do. They ask again, so without a lease, when nothing goes out, it does not
// gather what they ask for.
func (r *Replica) Hungry(domain, name string, now Now, fx *Effects) {
	l, ok := r.lists[tasklistKey{domain, name}]
	if !ok || !r.lease.holds(now.Mono) || l.active[taskstate.Ready]+l.active[taskstate.Backoff] == 0 {
		return
	}
	r.retrigger(now, fx, func(e *Entry) bool { return e.list == l && e.triggeredAt < now.MS-hungryAgeMS })
}

// Retrigger re-sends the triggers of all that is ready of one shard, or of all of them if
// shard is negative: those of one domain, or of all if none is named.
func (r *Replica) Retrigger(domain string, shard int, now Now, fx *Effects) int {
	return r.retrigger(now, fx, func(e *Entry) bool {
		return (domain == "" || e.Domain == domain) && (shard < 0 || e.list.shard == shard)
	})
}

func (r *Replica) retrigger(now Now, fx *Effects, match func(*Entry) bool) int {
	ready := r.inLine(func(e *Entry) bool {
		return (e.State == taskstate.Ready || e.Due(now.MS)) && match(e)
	})
	for _, e := range ready {
		r.trigger(e, now, fx)
	}
	fx.Counts.Retriggered += int64(len(ready))
	return len(ready)
}

// inLine lists the tasks that match, in the order in which they became ready, those of
// one message in its order: whoever is told of them again must not see them shuffled.
func (r *Replica) inLine(match func(*Entry) bool) []*Entry {
	var line []*Entry
	for _, e := range r.tasks {
		if !e.left && match(e) {
			line = append(line, e)
		}
	}
	slices.SortFunc(line, func(a, b *Entry) int {
		return cmp.Or(
			cmp.Compare(a.ReadyAt, b.ReadyAt),
			cmp.Compare(a.Position.Seq(), b.Position.Seq()),
			cmp.Compare(a.index, b.index),
			slices.Compare(a.ID[:], b.ID[:]),
		)
	})
	return line
}
