package dispatch

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Census is what one tasklist has in this partition.
type Census struct {
	Ready, Running, Backoff int64
	// Tasks completed, dead and expired, and attempts failed, since this owner took over.
	Completed, Dead, Expired, Failed int64
	// OldestReadyAt is since when its oldest ready task is ready, Unix ms; 0 = none is. Tasks that their order key holds up are left out.
	OldestReadyAt int64
}

// Describe counts the tasks of one tasklist.
func (x *Lists) Describe(domain, name string) (c Census) {
	l, ok := x.lists[tasklistKey{domain, name}]
	if !ok {
		return c
	}
	c.Ready, c.Running, c.Backoff = l.active[taskstate.Ready], l.active[taskstate.Running], l.active[taskstate.Backoff]
	c.Completed, c.Dead, c.Expired, c.Failed = l.completed, l.dead, l.expired, l.failed
	if c.Ready == 0 {
		return c
	}
	for e := l.sent.first; e != nil; e = e.after {
		if e.counted == taskstate.Ready && (c.OldestReadyAt == 0 || e.ReadySince() < c.OldestReadyAt) {
			c.OldestReadyAt = e.ReadySince()
		}
	}
	return c
}

// DomainCensus is what one domain has in this partition.
type DomainCensus struct {
	Domain string
	Census
}

// Domains are what up to most domains have, or one, if it is named: those that have most tasks first. It looks at all ready tasks.
func (x *Lists) Domains(domain string, most int) (all []DomainCensus) {
	at := map[string]int{}
	for _, l := range x.order {
		if domain != "" && l.key.domain != domain {
			continue
		}
		i, ok := at[l.key.domain]
		if !ok {
			i, at[l.key.domain] = len(all), len(all)
			all = append(all, DomainCensus{Domain: l.key.domain})
		}
		all[i].add(x.Describe(l.key.domain, l.key.tasklist))
	}
	slices.SortFunc(all, func(a, b DomainCensus) int {
		return cmp.Or(cmp.Compare(b.Ready+b.Running+b.Backoff, a.Ready+a.Running+a.Backoff), strings.Compare(a.Domain, b.Domain))
	})
	return all[:min(most, len(all))]
}

func (c *Census) add(o Census) {
	c.Ready, c.Running, c.Backoff = c.Ready+o.Ready, c.Running+o.Running, c.Backoff+o.Backoff
	c.Completed, c.Dead, c.Expired, c.Failed = c.Completed+o.Completed, c.Dead+o.Dead, c.Expired+o.Expired, c.Failed+o.Failed
	if c.OldestReadyAt == 0 || o.OldestReadyAt > 0 && o.OldestReadyAt < c.OldestReadyAt {
		c.OldestReadyAt = o.OldestReadyAt
	}
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
)

// FindOldest looks at all tasks that wait for a grant, now and then; mono is a clock that never jumps.
func (x *Lists) FindOldest(mono time.Duration) {
	if mono < x.longest.next {
		return
	}
	readyAt, looks := int64(0), 0
	for _, l := range x.order {
		for e := l.sent.first; e != nil; e = e.after {
			if looks++; readyAt == 0 || e.ReadySince() < readyAt {
				readyAt = e.ReadySince()
			}
		}
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
