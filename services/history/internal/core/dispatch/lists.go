package dispatch

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/nottaken"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// New makes empty lists.
func New(cfg Config) *Lists {
	return &Lists{
		cfg: cfg, Waits: nottaken.Waits{Paused: cfg.Paused}, lists: make(map[tasklistKey]*tasklist), DomainLists: DomainLists{domains: make(map[string]*domain)}, Shards: Shards{make(map[uint32]*shard)}, turn: 1,
		releases: make(map[releaseKey]int), groups: make(map[groupKey]uint64),
	}
}

// NextTurn begins another turn, whose effects are others.
func (x *Lists) NextTurn() {
	x.turn++
	clear(x.releases)
	clear(x.groups)
}

// ReadySince is since when e waits for a grant, or waited for the one that it has: before its turn it could not run. Unix ms.
func (e *Entry) ReadySince() int64 {
	if e.Seat == nil {
		return e.ReadyAt
	}
	return max(e.ReadyAt, e.Seat.TurnAt)
}

// Triggered tells whether its trigger was sent.
func (e *Entry) Triggered() bool { return e.triggeredAt > 0 }

// CountsAsReady tells whether it is ready, or due by our clock.
func (e *Entry) CountsAsReady() bool { return e.counted == taskstate.Ready }

// Listed tells whether e is in memory and has not left.
func (e *Entry) Listed() bool { return e.column != nil }

// columnOf is a column of a tasklist, a new one if need be.
func (x *Lists) columnOf(l *tasklist, key columnKey) *column {
	if c, ok := l.columns[key]; ok {
		return c
	}
	p := l.packs[key.packKey]
	if p == nil {
		p = &pack{shard: ids.MatchingShard(l.key.domain, l.key.tasklist, int(key.partition), x.cfg.Shards)}
		l.packs[key.packKey] = p
		l.spread = l.spread || key.partition > 0
	}
	p.columns++
	c := &column{key: key, list: l, pack: p, of: l.groupTasks(key.group)}
	l.columns[key] = c
	return c
}

// groupTasks counts one more column of a group; nil = it has none.
func (l *tasklist) groupTasks(group string) *groupTasks {
	if group == "" {
		return nil
	}
	g := l.groups[group]
	if g == nil {
		g = &groupTasks{}
		l.groups[group] = g
	}
	g.columns++
	return g
}

// Enqueue files e under its domain, tasklist and column; Recount counts it there.
func (x *Lists) Enqueue(e *Entry) {
	x.file(e)
	e.column.list.domain.enter(e)
	if e.Parkings == 0 {
		e.column.list.admitted++
	}
}

// file files e under its tasklist and column.
func (x *Lists) file(e *Entry) {
	key := tasklistKey{e.Domain, e.Tasklist}
	l, ok := x.lists[key]
	if !ok {
		l = &tasklist{
			key: key, shard: ids.MatchingShard(e.Domain, e.Tasklist, 0, x.cfg.Shards), columns: make(map[columnKey]*column), packs: make(map[packKey]*pack),
			groups: make(map[string]*groupTasks), at: len(x.order),
		}
		x.lists[key] = l
		x.DomainLists.add(l)
		x.order = append(x.order, l)
	}
	e.column = x.columnOf(l, columnKey{packKey{e.Type, e.Priority, x.partitionFor(l, e.ID), e.Cost()}, e.Group()})
	e.column.tasks++
	l.came++
	if g := e.column.of; g != nil {
		g.Came++
	}
}

// Replace moves e, which does not run, to the tasklist and the column that it belongs to now; Recount counts it there.
func (x *Lists) Replace(e *Entry) {
	x.uncount(e)
	old := e.column
	if old.list.key.tasklist != e.Tasklist {
		x.stepOut(e)
		x.file(e)
		return
	}
	key := old.key
	if key.priority, key.group = e.Priority, e.Group(); key == old.key {
		return
	}
	to := x.columnOf(old.list, key)
	to.tasks++
	x.stepOut(e)
	e.column = to
	if to.of != nil {
		to.of.Came++
	}
}

// idleMax is how many columns are kept that have no tasks: a tasklist is mostly used again.
const idleMax = 1024

// stepOut takes e out of its column. Columns that have been empty for longest are forgotten, and tasklists without
// columns.
func (x *Lists) stepOut(e *Entry) {
	c := e.column
	e.column = nil // it is kept for some time, and must not keep its tasklist
	if c.tasks--; c.tasks > 0 || c.idle {
		return
	}
	c.idle = true
	x.idle = append(x.idle, c)
	if len(x.idle) <= idleMax {
		return
	}
	old := x.idle[0]
	x.idle[0] = nil
	x.idle = x.idle[1:]
	if old.idle = false; old.tasks == 0 {
		x.forget(old)
	}
}

func (x *Lists) forget(c *column) {
	l := c.list
	if c.pack.columns--; c.pack.columns == 0 {
		delete(l.packs, c.key.packKey)
	}
	if c.of != nil {
		if c.of.columns--; c.of.columns == 0 {
			delete(l.groups, c.key.group)
		}
	}
	if delete(l.columns, c.key); len(l.columns) > 0 {
		return
	}
	delete(x.lists, l.key)
	x.DomainLists.remove(l)
	last := len(x.order) - 1
	x.order[l.at] = x.order[last]
	x.order[l.at].at = l.at
	x.order[last] = nil
	x.order = x.order[:last]
}

// Recount moves e to the count of its current state.
func (x *Lists) Recount(e *Entry) {
	if e.counted == e.State {
		return
	}
	e.column.count(e.counted, -1)
	x.endWait(e)
	e.endRun()
	e.counted, e.reported = e.State, e.reported && e.counted == taskstate.None && e.State == taskstate.Ready // an update took it out
	if e.counted.Finished() {
		e.counted = taskstate.None
	}
	e.column.count(e.counted, 1)
	if e.State == taskstate.Running {
		e.column.list.started++
		e.booked = e.Attempt.Limits != nil
		e.running().push(e)
	}
}

// CountReady counts e, whose wait is over by our clock, as ready.
func (e *Entry) CountReady() {
	if e.DueAt == 0 { // it blocks its order key
		return
	}
	e.column.count(e.counted, -1)
	e.counted = taskstate.Ready
	e.column.count(e.counted, 1)
}

// endRun takes e out of those that run.
func (e *Entry) endRun() {
	if e.counted == taskstate.Running {
		e.running().remove(e)
		e.booked, e.Attempt.Shard = false, 0
	}
}

// Leave takes e out.
func (x *Lists) Leave(e *Entry) {
	x.uncount(e)
	e.Received()
	e.column.list.domain.leave(e)
	x.stepOut(e)
}

func (x *Lists) uncount(e *Entry) {
	x.endWait(e)
	e.endRun()
	e.column.count(e.counted, -1)
	e.counted = taskstate.None
}

// count counts tasks in a state, or fewer of them.
func (c *column) count(state taskstate.State, n int64) {
	if state == taskstate.None {
		return
	}
	c.list.active[state] += n
	if c.of != nil && (state == taskstate.Ready || state == taskstate.Backoff) {
		c.of.Tasks += n
	}
}

// CountEnd counts a task that has ended.
func (x *Lists) CountEnd(e *Entry) {
	switch e.State {
	case taskstate.Completed:
		e.column.list.completed++
	case taskstate.Dead:
		e.column.list.dead++
	case taskstate.Lapsed:
		e.column.list.expired++
	}
}

// CountFailure counts an attempt of e that failed.
func (x *Lists) CountFailure(e *Entry) { e.column.list.failed++ }

// push puts e at the end.
func (l *entryList) push(e *Entry) {
	e.before = l.last
	if l.last == nil {
		l.first = e
	} else {
		l.last.after = e
	}
	l.last = e
}

func (l *entryList) remove(e *Entry) {
	if e.before == nil {
		l.first = e.after
	} else {
		e.before.after = e.after
	}
	if e.after == nil {
		l.last = e.before
	} else {
		e.after.before = e.before
	}
	e.before, e.after = nil, nil
}

// sentNow notes that the trigger of e is sent now.
func (x *Lists) sentNow(e *Entry, nowMS int64) {
	x.endWait(e)
	e.triggeredAt = nowMS
	e.waits = true
	e.column.list.sent.push(e)
}

// endWait takes e out of those that wait for a grant.
func (x *Lists) endWait(e *Entry) {
	if !e.waits {
		return
	}
	if x.sweep.next == e {
		x.sweep.next = e.after
	}
	e.waits = false
	e.column.list.sent.remove(e)
}

// relocate moves e, whose trigger is to be sent, out of a partition that is no more.
func (x *Lists) relocate(e *Entry) {
	old := e.column
	l := old.list
	if old.key.partition == 0 {
		return
	}
	n := x.partitions(l)
	if old.key.partition < n {
		return
	}
	if l.turn.at >= n {
		l.turn.given = PackTriggers
	}
	key := old.key
	key.partition = x.partitionFor(l, e.ID)
	to := x.columnOf(l, key)
	to.tasks++
	x.stepOut(e)
	e.column = to
}
