package due

import (
	"iter"
	"math"
	"slices"
	"strings"
)

// Counts says how many tasks of a table wait, near and far ones. It is valid until the next change.
type Counts struct {
	groups  *groups
	buckets *buckets
	horizon *horizon
}

// Counts says how many tasks wait.
func (t *Table) Counts() Counts { return Counts{&t.groups, &t.buckets, &t.horizon} }

// Waiting counts the waiting tasks of a tasklist, or of all tasklists of the
// domain if tasklist is empty. It misses those that only Others counts.
func (c Counts) Waiting(domain, tasklist string) int {
	if tasklist != "" {
		if q := c.groups.queues[queueKey{domain, tasklist}]; q != nil {
			return q.waiting
		}
		return 0
	}
	if d := c.groups.domains.byName[domain]; d != nil {
		return int(d.total.Tasks)
	}
	return 0
}

// Domains is what waits of some domains, without those of which nothing does. It looks at no tasklist.
func (c Counts) Domains(names iter.Seq[string]) map[string]Total {
	all := map[string]Total{}
	for name := range names {
		if d := c.groups.domains.byName[name]; d != nil && d.total.Tasks > 0 {
			all[name] = d.total
		}
	}
	return all
}

// OfDomain is how many tasks of a domain wait, and when the next one is due of those in memory, Unix ms; 0 = none is in memory.
type OfDomain struct {
	Domain  string
	Waiting int64
	NextMS  int64
}

// OfDomains are the counts of all domains with waiting tasks, in no order. It looks at no task.
func (c Counts) OfDomains() []OfDomain {
	all := make([]OfDomain, 0, len(c.groups.domains.byName))
	for name, d := range c.groups.domains.byName {
		if d.total.Tasks == 0 {
			continue
		}
		one := OfDomain{Domain: name, Waiting: d.total.Tasks}
		if d.heap.len() > 0 {
			one.NextMS = d.heap.head().dueMS
		}
		all = append(all, one)
	}
	return all
}

// Count is how many tasks of a tasklist wait.
type Count struct {
	Tasklist string
	Waiting  int
}

// Tasklists are the first limit tasklists of a domain with waiting tasks whose names come behind after,
// sorted by name.
func (c Counts) Tasklists(domain, after string, limit int) []Count {
	var found []Count
	for key, q := range c.groups.queues {
		if key.domain == domain && key.tasklist > after && q.waiting > 0 {
			found = append(found, Count{key.tasklist, q.waiting})
		}
	}
	slices.SortFunc(found, func(a, b Count) int { return strings.Compare(a.Tasklist, b.Tasklist) })
	return found[:min(limit, len(found))]
}

// NearUpTo is the last bucket that is near. It is false while others are being read.
func (c Counts) NearUpTo() (bucket int64, ok bool) {
	return int64(c.horizon.last), c.horizon.loaded && c.horizon.last == c.horizon.to
}

// FirstFarMS is the time of the first bucket that is not near, Unix ms; false = all are.
func (c Counts) FirstFarMS() (ms int64, ok bool) {
	if c.horizon.next == math.MaxInt32 {
		return 0, false
	}
	return int64(c.horizon.next) * c.horizon.cfg.BucketMS, true
}

// farVisits is about how many buckets, and kinds in them, a search for a far bucket visits.
const farVisits = 10_000

// FarBucket is the first bucket from one on in which tasks of a domain may wait that are not near, and of a tasklist, empty = any. One call visits a bounded
// number of buckets: if it has not found one, and there are more, another call goes on at the number.
func (c Counts) FarBucket(domain, tasklist string, from int64) (number int64, found, more bool) {
	if c.Waiting(domain, tasklist)+c.Others(domain) == 0 {
		return from, false, false
	}
	number, more = c.Far(domain, from, math.MaxInt64, func(_ int64, g *Group, _ int) bool {
		found = tasklist == "" || g.Tasklist == "" || g.Tasklist == tasklist
		return found
	})
	return number, found, found || more
}

// Others counts the tasks of a domain that are counted without their tasklists.
func (c Counts) Others(domain string) int {
	if q := c.groups.queues[queueKey{domain: domain}]; q != nil {
		return q.waiting
	}
	return 0
}

// Far hands the counts of a domain in the far buckets from one on and before another one to visit, those of each kind, until that has enough. A kind has a
// tasklist and a type. Without a type it is all other types of the tasklist, without both it is all other tasklists. One call visits a bounded number of
// buckets: with more, another call goes on at next.
//
// The count of a tasklist is not more than it has. Of a task that another owner had fire early the type is not known, and another type of the tasklist has one
// less until the bucket comes near.
func (c Counts) Far(domain string, from, until int64, visit func(bucket int64, g *Group, tasks int) (enough bool)) (next int64, more bool) {
	next = max(from, c.horizon.firstFar())
	for left := farVisits; next < until && next <= int64(c.buckets.last); next++ {
		if left--; left < 0 {
			return next, true
		}
		b := c.buckets.all[int32(next)]
		if b == nil {
			continue
		}
		lookups, enough := c.buckets.ofDomain(b, domain, func(g *Group, tasks int) bool { return tasks > 0 && visit(next, g, tasks) })
		if enough {
			return next, false
		}
		left -= lookups
	}
	return next, false
}
