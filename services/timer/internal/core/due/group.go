package due

import (
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Group is what many waiting tasks have in common.
type Group struct {
	Domain, Tasklist, Type string
	// Priority is 1 (most urgent) to 5.
	Priority uint8
	// Retry tells that the task has failed before: it waits for its next attempt.
	Retry bool
	// Keyed tells that the task has an order key.
	Keyed bool
	// Failing tells that the task has failed so often that it is fired into the least urgent lane. Table.Load sets it.
	Failing bool
}

// Lane is where its tasks are fired to.
func (g *Group) Lane() ids.Lane {
	switch {
	case g.Keyed:
		return ids.LaneKeyed
	case g.Failing:
		return ids.LaneLast
	}
	return ids.Lane(g.Priority)
}

type queueKey struct{ domain, tasklist string }

// queue counts the waiting tasks of one tasklist.
type queue struct {
	key     queueKey
	domain  *domain
	waiting int
	refs    int
}

// count adds tasks that wait, and the bytes of their records, to the queue and its domain. Both are negative for one that waits no more.
func (q *queue) count(tasks int, bytes int64) {
	q.waiting += tasks
	q.domain.total = Total{q.domain.total.Tasks + int64(tasks), q.domain.total.Bytes + bytes}
}

type groupHandle uint32

type group struct {
	Group
	queue *queue
	refs  int
}

// groups interns Groups, so that an entry holds four bytes of them. A group is
// forgotten with its last entry, its last far bucket and its last fired stay that is remembered, so tenants cannot make it grow by inventing names.
type groups struct {
	domains *domains
	all     []group
	free    []groupHandle
	handles map[Group]groupHandle
	queues  map[queueKey]*queue
}

func newGroups(d *domains) groups {
	return groups{domains: d, handles: map[Group]groupHandle{}, queues: map[queueKey]*queue{}}
}

func (g *groups) at(h groupHandle) *group { return &g.all[h] }

// take returns the handle of want and counts one entry more. The strings of want
// may belong to a buffer of the caller: they are copied where they are kept.
func (g *groups) take(want Group) groupHandle {
	h, ok := g.handles[want]
	if !ok {
		h = g.add(want)
	}
	g.all[h].refs++
	return h
}

func (g *groups) add(want Group) groupHandle {
	want.Domain, want.Tasklist, want.Type = strings.Clone(want.Domain), strings.Clone(want.Tasklist), strings.Clone(want.Type)
	q := g.takeQueue(queueKey{want.Domain, want.Tasklist})
	var h groupHandle
	if n := len(g.free); n > 0 {
		h, g.free = g.free[n-1], g.free[:n-1]
		g.all[h] = group{Group: want, queue: q}
	} else {
		h = groupHandle(len(g.all))
		g.all = append(g.all, group{Group: want, queue: q})
	}
	g.handles[want] = h
	return h
}

// hold counts one entry more of a group that is in use.
func (g *groups) hold(h groupHandle) { g.all[h].refs++ }

// drop counts one entry less.
func (g *groups) drop(h groupHandle) {
	x := &g.all[h]
	if x.refs--; x.refs > 0 {
		return
	}
	delete(g.handles, x.Group)
	g.dropQueue(x.queue)
	*x = group{}
	g.free = append(g.free, h)
}

// takeQueue returns a queue and counts one use more.
func (g *groups) takeQueue(key queueKey) *queue {
	q := g.queues[key]
	if q == nil {
		q = &queue{key: key, domain: g.domains.take(key.domain)}
		g.queues[key] = q
	}
	q.refs++
	return q
}

// dropQueue counts one use less.
func (g *groups) dropQueue(q *queue) {
	if q.refs--; q.refs == 0 {
		delete(g.queues, q.key)
		g.domains.drop(q.domain)
	}
}
