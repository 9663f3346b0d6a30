package replica

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Get is the task as memory has it; nil if it is not there.
func (r *Replica) Get(id ids.TaskID) *taskstate.Task {
	e, ok := r.tasks[id]
	if !ok || e.left && !e.State.Finished() {
		return nil
	}
	return &e.Task
}

// Commanded tells whether a cancel or an update waits for a task: it may be on its way here from the timer store, which has given it up.
func (r *Replica) Commanded(id ids.TaskID) bool {
	return slices.ContainsFunc(r.early.of(id), (*held).command)
}

// List are up to limit tasks in memory that match, the newest first.
func (r *Replica) List(limit int, match func(*taskstate.Task) bool) []*taskstate.Task {
	var hits []*taskstate.Task
	for _, e := range r.tasks {
		if !e.left && match(&e.Task) {
			hits = keepFirst(hits, &e.Task, limit, func(a, b *taskstate.Task) int { return bytes.Compare(b.ID[:], a.ID[:]) })
		}
	}
	return hits
}

// keepFirst adds one to the first most of some, which are sorted. To sort all that match would hold up the partition for
// everybody, whenever somebody looks at a flood.
func keepFirst[T any](all []T, one T, most int, compare func(a, b T) int) []T {
	if len(all) >= most && (most <= 0 || compare(one, all[most-1]) >= 0) {
		return all
	}
	at, _ := slices.BinarySearchFunc(all, one, compare)
	all = slices.Insert(all, at, one)
	return all[:min(len(all), most)]
}

// Place is where a ready task stands in the line of its tasklist: by priority, then the one that is ready for longest.
type Place struct {
	Priority int32
	ReadyAt  int64
	ID       ids.TaskID
}

// PlaceOf is the place of a ready task.
func PlaceOf(t *taskstate.Task) Place { return Place{t.Priority, t.ReadyAt, t.ID} }

// Compare is negative where p comes before o.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Priority, o.Priority), cmp.Compare(p.ReadyAt, o.ReadyAt), bytes.Compare(p.ID[:], o.ID[:]))
}

// Next are up to limit ready tasks in memory that match, but for those that their order key holds up, in the order of their places; more: there are more.
func (r *Replica) Next(limit int, match func(*taskstate.Task) bool) (next []*taskstate.Task, more bool) {
	for _, e := range r.tasks {
		if !e.left && e.counted == taskstate.Ready && !e.HeldUp() && match(&e.Task) {
			next = keepFirst(next, &e.Task, limit+1, func(a, b *taskstate.Task) int { return PlaceOf(a).Compare(PlaceOf(b)) })
		}
	}
	return next[:min(limit, len(next))], len(next) > limit
}

// Census is what one tasklist has in this partition.
type Census struct {
	Ready, Running, Backoff int64
	// Tasks completed, dead and expired, and attempts failed, since this owner took over.
	Completed, Dead, Expired, Failed int64
	// OldestReadyAt is since when its oldest ready task is ready, Unix ms; 0 = none is. Tasks that their order key holds up are left out.
	OldestReadyAt int64
}

// Describe counts the tasks of one tasklist.
func (r *Replica) Describe(domain, name string) (c Census) {
	l, ok := r.lists[tasklistKey{domain, name}]
	if !ok {
		return c
	}
	c.Ready, c.Running, c.Backoff = l.active[taskstate.Ready], l.active[taskstate.Running], l.active[taskstate.Backoff]
	c.Completed, c.Dead, c.Expired, c.Failed = l.completed, l.dead, l.expired, l.failed
	if c.Ready == 0 {
		return c
	}
	for e := l.sent.first; e != nil; e = e.after {
		if e.counted == taskstate.Ready && (c.OldestReadyAt == 0 || e.inLineSince() < c.OldestReadyAt) {
			c.OldestReadyAt = e.inLineSince()
		}
	}
	return c
}

// Queued is how many tasks of a queue are due and wait for their first or next attempt, and how many have come since this owner took over, or
// since the queue was forgotten.
func (r *Replica) Queued(of backlog.Queue) backlog.Held {
	l := r.lists[tasklistKey{of.Domain, of.Name}]
	switch {
	case l == nil:
		return backlog.Held{}
	case of.Group == "":
		return backlog.Held{Tasks: l.active[taskstate.Ready] + l.active[taskstate.Backoff], Came: l.came}
	case l.groups[of.Group] == nil:
		return backlog.Held{}
	}
	return l.groups[of.Group].Held
}

// Groups is what each group of a tasklist has, if it is any.
func (r *Replica) Groups(of backlog.Tasklist) iter.Seq2[string, backlog.Held] {
	return func(yield func(string, backlog.Held) bool) {
		l := r.lists[tasklistKey{of.Domain, of.Name}]
		if l == nil {
			return
		}
		for name, g := range l.groups {
			if g.Tasks > 0 && !yield(name, g.Held) {
				return
			}
		}
	}
}

// ListCounts is how many unfinished tasks a tasklist has in this partition.
type ListCounts struct {
	Tasklist                string
	Ready, Running, Backoff int64
}

// Tasklists are the first limit tasklists of a domain with unfinished tasks whose names come behind after,
// sorted by name.
func (r *Replica) Tasklists(domain, after string, limit int) []ListCounts {
	var found []ListCounts
	for _, l := range r.order {
		ready, running, backoff := l.active[taskstate.Ready], l.active[taskstate.Running], l.active[taskstate.Backoff]
		if l.key.domain == domain && l.key.tasklist > after && ready+running+backoff > 0 {
			found = append(found, ListCounts{l.key.tasklist, ready, running, backoff})
		}
	}
	slices.SortFunc(found, func(a, b ListCounts) int { return strings.Compare(a.Tasklist, b.Tasklist) })
	return found[:min(limit, len(found))]
}

// GrabsDecided tells whether every grab up to an event has been decided.
func (r *Replica) GrabsDecided(seq uint64) bool { return r.eventAt >= seq }

// ArchiveSeq is the last sequence of the archive that this replica knows of.
func (r *Replica) ArchiveSeq() uint64 { return r.archive.last }

// Len is how many tasks are in memory that have not left.
func (r *Replica) Len() int { return r.live }
