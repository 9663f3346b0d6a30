package replica

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

type tasklistKey struct{ domain, tasklist string }

// tasklist is the tasks of one tasklist in this partition.
type tasklist struct {
	key tasklistKey
	// shard is that of its first partition.
	shard  int
	active [taskstate.Lapsed + 1]int64
	// Ends since this owner took over, or since the list was forgotten.
	completed, dead, expired int64
	// Attempts that failed since then, and tasks that came.
	failed  int64
	came    int64
	columns map[columnKey]*column
	packs   map[packKey]*pack
	// groups are those of its columns.
	groups map[string]*groupTasks
	// at is its place in Replica.order.
	at int
	// turn says which partition tasks are given now. spread: it has, or has had, columns of partitions besides the first one.
	turn   partitionTurn
	spread bool
	// sent are its tasks that wait for a grant, the one whose trigger was sent first at the front. So
	// what is to be triggered again is found without looking at the rest.
	sent entryList
	// here are those that run of its own shard, elsewhere those of others, by taskstate.Attempt.Shard.
	here      runs
	elsewhere map[uint16]*runs
}

// column is the tasks of one partition, type, priority, cost and group of a tasklist: matching grants
// them in the order in which they became ready.
type column struct {
	key  columnKey
	list *tasklist
	// tasks counts those in memory. idle: it is in the queue of idle columns.
	tasks int
	idle  bool
	// grantedReadyAt is the latest ReadyAt among those granted. A task that was ready well
	// before, and was not granted, has been overtaken: its trigger is lost.
	grantedReadyAt int64
	pack           *pack
	// of counts the tasks of its group; nil = they have none.
	of *groupTasks
}

// groupTasks counts the tasks of one group of a tasklist, and its columns.
type groupTasks struct {
	backlog.Held
	columns int
}

type columnKey struct {
	packKey
	group string
}

// pack is where the triggers of one partition, type, priority and cost of a tasklist are gathered, those of all its groups together.
type pack struct {
	packRef
	// shard is where they go.
	shard int
	// columns counts those that gather there.
	columns int
}

type packKey struct {
	taskType            string
	priority, partition int32
	cost                int32
}

// columnOf is a column of a tasklist, a new one if need be.
func (r *Replica) columnOf(l *tasklist, key columnKey) *column {
	if c, ok := l.columns[key]; ok {
		return c
	}
	p := l.packs[key.packKey]
	if p == nil {
		p = &pack{shard: ids.MatchingShard(l.key.domain, l.key.tasklist, int(key.partition), r.cfg.Shards)}
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

// enqueue files e under its tasklist and column.
func (r *Replica) enqueue(e *Entry) {
	key := tasklistKey{e.Domain, e.Tasklist}
	l, ok := r.lists[key]
	if !ok {
		l = &tasklist{
			key: key, shard: ids.MatchingShard(e.Domain, e.Tasklist, 0, r.cfg.Shards), columns: make(map[columnKey]*column), packs: make(map[packKey]*pack),
			groups: make(map[string]*groupTasks), at: len(r.order),
		}
		r.lists[key] = l
		r.order = append(r.order, l)
	}
	e.column = r.columnOf(l, columnKey{packKey{e.Type, e.Priority, r.partitionFor(l, e.ID), e.Cost()}, e.Group()})
	e.column.tasks++
	l.came++
	if g := e.column.of; g != nil {
		g.Came++
	}
}

// replace moves e, which does not run, to the column that it belongs to now; carryOut counts it there.
func (r *Replica) replace(e *Entry) {
	r.uncount(e)
	old := e.column
	key := old.key
	if key.priority, key.group = e.Priority, e.Group(); key == old.key {
		return
	}
	to := r.columnOf(old.list, key)
	to.tasks++
	r.stepOut(e)
	e.column = to
	if to.of != nil {
		to.of.Came++
	}
}

// idleMax is how many columns are kept that have no tasks: a tasklist is mostly used again.
const idleMax = 1024

// stepOut takes e out of its column. Columns that have been empty for longest are forgotten, and
// tasklists without columns.
func (r *Replica) stepOut(e *Entry) {
	c := e.column
	e.column = nil // it is kept for some time, and must not keep its tasklist
	if c.tasks--; c.tasks > 0 || c.idle {
		return
	}
	c.idle = true
	r.idle = append(r.idle, c)
	if len(r.idle) <= idleMax {
		return
	}
	old := r.idle[0]
	r.idle[0] = nil
	r.idle = r.idle[1:]
	if old.idle = false; old.tasks == 0 {
		r.forget(old)
	}
}

func (r *Replica) forget(c *column) {
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
	delete(r.lists, l.key)
	last := len(r.order) - 1
	r.order[l.at] = r.order[last]
	r.order[l.at].at = l.at
	r.order[last] = nil
	r.order = r.order[:last]
}

// recount moves e to the count of its current state.
func (r *Replica) recount(e *Entry) {
	if e.counted == e.State {
		return
	}
	e.column.count(e.counted, -1)
	r.endWait(e)
	e.endRun()
	e.counted = e.State
	if e.counted.Finished() {
		e.counted = taskstate.None
	}
	e.column.count(e.counted, 1)
	if e.State == taskstate.Running {
		e.booked = e.Attempt.Limits != nil
		e.running().push(e)
	}
}

// countReady counts e, whose wait is over by our clock, as ready.
func (e *Entry) countReady() {
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

func (r *Replica) uncount(e *Entry) {
	r.endWait(e)
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

// ended counts a task that has ended, and tells who waits for it.
func (r *Replica) ended(e *Entry, fx *Effects) {
	switch e.State {
	case taskstate.Completed:
		e.column.list.completed++
	case taskstate.Dead:
		e.column.list.dead++
	case taskstate.Lapsed:
		e.column.list.expired++
	}
	if r.replay == nil {
		fx.Ended = append(fx.Ended, e)
	}
}

// entryList is some tasks of a tasklist, in the order in which they came. A task is in one list at most.
type entryList struct{ first, last *Entry }

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
