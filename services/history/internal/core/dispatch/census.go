package dispatch

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/nottaken"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Describe counts the tasks of one tasklist.
func (x *Lists) Describe(domain, name string) (c Census) {
	l, ok := x.lists[tasklistKey{domain, name}]
	if !ok {
		return c
	}
	if c = l.census(); c.Ready == 0 {
		return c
	}
	for e := l.sent.first; e != nil; e = e.after {
		if e.counted == taskstate.Ready {
			c.OldestReadyAt = older(c.OldestReadyAt, e.ReadySince())
		}
	}
	return c
}

// Queued is how many tasks of a queue are due and wait for their first or next attempt, and how many have come since
// this owner took over, or since the queue was forgotten.
func (x *Lists) Queued(of backlog.Queue) backlog.Held {
	l := x.lists[tasklistKey{of.Domain, of.Name}]
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

// QueuedGroups is what each group of a tasklist has, if it is any.
func (x *Lists) QueuedGroups(of backlog.Tasklist) iter.Seq2[string, backlog.Held] {
	return func(yield func(string, backlog.Held) bool) {
		l := x.lists[tasklistKey{of.Domain, of.Name}]
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

// Tasklists are the first limit tasklists of a domain with unfinished tasks whose names come behind after, sorted by
// name.
func (x *Lists) Tasklists(domain, after string, limit int) []ListCounts {
	var found []ListCounts
	for _, l := range x.order {
		ready, running, backoff := l.active[taskstate.Ready], l.active[taskstate.Running], l.active[taskstate.Backoff]
		if l.key.domain == domain && l.key.tasklist > after && ready+running+backoff > 0 {
			found = append(found, ListCounts{l.key.tasklist, ready, running, backoff})
		}
	}
	slices.SortFunc(found, func(a, b ListCounts) int { return strings.Compare(a.Tasklist, b.Tasklist) })
	return found[:min(limit, len(found))]
}

const (
	// oldestEvery is how often the oldest task is looked for, oldestPerTask how much later for each task that was
	// looked at: it costs some nanoseconds of each, and a backlog has as many as the windows hold.
	oldestEvery   = time.Second
	oldestPerTask = 50 * time.Microsecond
	// pausedLooks is for how many a task counts whose domain has pauses: four of them are looked for.
	pausedLooks = 5
)

// FindOldest looks at all tasks that wait for a grant, now and then; mono is a clock that never jumps.
func (x *Lists) FindOldest(mono time.Duration) {
	if mono < x.longest.next {
		return
	}
	readyAt, looks := int64(0), 0
	x.Waits.Begin()
	for _, l := range x.order {
		l.oldestReadyAt = 0
		if l.sent.first == nil {
			continue
		}
		one := nottaken.Tasklist{Domain: l.key.domain, Name: l.key.tasklist}
		paused, each := x.Waits.PausedOf(l.key.domain), 1
		if paused != nil {
			each = pausedLooks
		}
		for e := l.sent.first; e != nil; e = e.after {
			looks += each
			l.oldestReadyAt = older(l.oldestReadyAt, e.ReadySince())
			if paused == nil || !paused(l.key.tasklist, e.Type, e.Group()) {
				one.ReadyAt = older(one.ReadyAt, e.ReadySince())
			}
		}
		readyAt = older(readyAt, l.oldestReadyAt)
		x.Waits.Add(one)
	}
	x.longest = longestWait{readyAt, mono + max(oldestEvery, time.Duration(looks)*oldestPerTask)}
}

// OldestReady is for how long the oldest ready task had to wait for a grant so far, as of a moment ago; 0 = none waits.
// A task that is not read is left out: it is younger than what is read of its domain and lane.
func (x *Lists) OldestReady(nowMS int64) time.Duration {
	if x.longest.readyAt == 0 {
		return 0
	}
	return time.Duration(max(0, nowMS-x.longest.readyAt)) * time.Millisecond
}
