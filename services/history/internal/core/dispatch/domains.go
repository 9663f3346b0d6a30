package dispatch

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// DomainLists are the tasklists by domain.
type DomainLists struct {
	domains map[string]*domain
	counted counted
}

// domain is the tasklists of one domain, and its tasks, in any order.
type domain struct {
	lists []*tasklist
	tasks []*Entry
	// past is what was counted in tasklists that were forgotten.
	past Census
}

// Census is what one tasklist has in this partition.
type Census struct {
	Ready, Running, Backoff int64
	// Tasks completed, dead and expired, and attempts failed, since this owner took over.
	Completed, Dead, Expired, Failed int64
	// Admitted counts tasks that came in for the first time since then, Started attempts that started.
	Admitted, Started int64
	// OldestReadyAt is since when its oldest ready task is ready, Unix ms; 0 = none is. Tasks that their order key holds up are left out.
	OldestReadyAt int64
}

// census counts the tasks of l, but does not look which of them is the oldest.
func (l *tasklist) census() Census {
	return Census{
		Ready: l.active[taskstate.Ready], Running: l.active[taskstate.Running], Backoff: l.active[taskstate.Backoff],
		Completed: l.completed, Dead: l.dead, Expired: l.expired, Failed: l.failed, Admitted: l.admitted, Started: l.started,
	}
}

// census adds up what its tasklists have.
func (d *domain) census() Census {
	c := d.past
	for _, l := range d.lists {
		o := l.census()
		c.Ready, c.Running, c.Backoff = c.Ready+o.Ready, c.Running+o.Running, c.Backoff+o.Backoff
		c.addCounters(o)
		if o.Ready > 0 {
			c.OldestReadyAt = older(c.OldestReadyAt, l.oldestReadyAt)
		}
	}
	return c
}

// addCounters adds what was counted since the owner took over.
func (c *Census) addCounters(o Census) {
	c.Completed, c.Dead, c.Expired, c.Failed = c.Completed+o.Completed, c.Dead+o.Dead, c.Expired+o.Expired, c.Failed+o.Failed
	c.Admitted, c.Started = c.Admitted+o.Admitted, c.Started+o.Started
}

// older is the earlier one of two times, Unix ms; 0 = none.
func older(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

func (d *DomainLists) add(l *tasklist) {
	of := d.domains[l.key.domain]
	if of == nil {
		of = &domain{}
		d.domains[l.key.domain] = of
	}
	l.domain, l.ofDomain = of, len(of.lists)
	of.lists = append(of.lists, l)
}

func (d *DomainLists) remove(l *tasklist) {
	of := d.domains[l.key.domain]
	of.past.addCounters(l.census())
	last := len(of.lists) - 1
	of.lists[l.ofDomain] = of.lists[last]
	of.lists[l.ofDomain].ofDomain = l.ofDomain
	of.lists[last] = nil
	if of.lists = of.lists[:last]; last == 0 {
		delete(d.domains, l.key.domain)
	}
}

// enter gives a task a place among those of its domain.
func (d *domain) enter(e *Entry) {
	e.at = int32(len(d.tasks))
	d.tasks = append(d.tasks, e)
}

// leave has the last task take the place of one that leaves.
func (d *domain) leave(e *Entry) {
	last := len(d.tasks) - 1
	d.tasks[e.at] = d.tasks[last]
	d.tasks[e.at].at = e.at
	d.tasks[last] = nil
	d.tasks = d.tasks[:last]
}

// CountWaiting is how many tasks each of some domains has that wait for their first or next attempt, or for the timer store; if any does.
func (d *DomainLists) CountWaiting(wanted map[string]bool) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		visit := func(name string, of *domain) bool {
			n := int64(0)
			for _, l := range of.lists {
				n += l.active[taskstate.Waiting] + l.active[taskstate.Ready] + l.active[taskstate.Backoff]
			}
			return n == 0 || yield(name, n)
		}
		if len(wanted) < len(d.domains) { // the shorter way
			for name := range wanted {
				if of := d.domains[name]; of != nil && !visit(name, of) {
					return
				}
			}
			return
		}
		for name, of := range d.domains {
			if wanted[name] && !visit(name, of) {
				return
			}
		}
	}
}

// DomainCensus is what one domain has in this partition. Its oldest ready task is the one that FindOldest last found.
type DomainCensus struct {
	Domain string
	Census
}

// Domains are what up to most domains have, or one, if it is named: those that have most tasks first.
func (d *DomainLists) Domains(domain string, most int) (all []DomainCensus) {
	for name, of := range d.domains {
		if domain == "" || domain == name {
			all = append(all, DomainCensus{name, of.census()})
		}
	}
	slices.SortFunc(all, func(a, b DomainCensus) int {
		return cmp.Or(cmp.Compare(b.Ready+b.Running+b.Backoff, a.Ready+a.Running+a.Backoff), strings.Compare(a.Domain, b.Domain))
	})
	return all[:min(most, len(all))]
}

const (
	// countEvery is how often domains are counted, countPerDomain how much later for each of them: it costs about half a microsecond of each.
	countEvery     = time.Second
	countPerDomain = time.Millisecond
)

// counted is what domains had at some time. next is when they are counted again.
type counted struct {
	all      []DomainCensus
	at, next time.Duration
}

// CountDomains counts what all domains have, now and then; mono is a clock that never jumps. It looks at no task.
func (d *DomainLists) CountDomains(mono time.Duration) {
	if mono < d.counted.next {
		return
	}
	all := make([]DomainCensus, 0, len(d.domains))
	for name, of := range d.domains {
		all = append(all, DomainCensus{name, of.census()})
	}
	d.counted = counted{all, mono, mono + max(countEvery, time.Duration(len(all))*countPerDomain)}
}

// LastCensus is what CountDomains has counted, in no order, and when. The slice is not changed any more.
func (d *DomainLists) LastCensus() ([]DomainCensus, time.Duration) {
	return d.counted.all, d.counted.at
}
