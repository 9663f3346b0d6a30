package due

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Ahead counts the tasks of a domain that are due in the time to come, by spans of buckets, and by tasklist and type. Near counts a task that is near; Far
// counts the others, in steps.
type Ahead struct {
	// Domain, and Tasklist and Type, empty = any.
	Domain, Tasklist, Type string
	// From and Until are the first bucket that counts, and the first one that does not any more. What is due before First counts there.
	From, Until, First int64
	// Width is how many buckets a span has, 1 or more; a span begins at a multiple of it.
	Width int64
	// Most is how many spans are wanted: the first ones with tasks.
	Most int

	spans map[int64]int64
	kinds map[Kind]int64
	// next is the bucket where Far goes on.
	next int64
}

// Kind is a tasklist and a type.
type Kind struct{ Tasklist, Type string }

// SpanCount is how many tasks are due in a span that begins at a bucket.
type SpanCount struct{ Bucket, Tasks int64 }

// KindCount is how many tasks of a kind are due.
type KindCount struct {
	Kind
	Tasks int64
}

func (a *Ahead) has(g *Group) bool {
	return g.Domain == a.Domain && (a.Tasklist == "" || g.Tasklist == a.Tasklist) && (a.Type == "" || g.Type == a.Type)
}

func (a *Ahead) add(bucket int64, g *Group, tasks int64) {
	if a.spans == nil {
		a.spans, a.kinds = map[int64]int64{}, map[Kind]int64{}
	}
	bucket = max(bucket, a.First)
	a.spans[bucket-bucket%a.Width] += tasks
	a.kinds[Kind{g.Tasklist, g.Type}] += tasks
}

// Near counts a task that is near.
func (a *Ahead) Near(s *Stay, bucket int64) {
	if bucket >= a.From && bucket < a.Until && a.has(&s.Group) {
		a.add(bucket, &s.Group, 1)
	}
}

// Far counts tasks that are not near. One call visits a bounded number of buckets, and tasklists in them; with more, another call goes on. After it has as many
// spans as are wanted it counts no others.
func (a *Ahead) Far(c Counts) (more bool) {
	a.next = max(a.next, a.From, c.horizon.firstFar())
	for left := farVisits; a.next < a.Until && a.next <= int64(c.buckets.last); a.next++ {
		if left--; left < 0 {
			return true
		}
		b := c.buckets.all[int32(a.next)]
		if b == nil || !b.isFar {
			continue
		}
		if span := a.next - a.next%a.Width; len(a.spans) >= a.Most && a.before(span) >= a.Most {
			a.Until = span
			return false
		}
		left -= len(b.far)
		for h, n := range b.far {
			if g := c.groups.at(h); a.has(&g.Group) {
				a.add(a.next, &g.Group, int64(n.tasks))
			}
		}
	}
	return false
}

// before is how many spans with tasks come before one. A task that is near alone may be in a later one.
func (a *Ahead) before(span int64) (n int) {
	for at, tasks := range a.spans {
		if at < span && tasks > 0 {
			n++
		}
	}
	return n
}

// Spans are those with tasks, in order, at most Most of them.
func (a *Ahead) Spans() (all []SpanCount) {
	for _, at := range slices.Sorted(maps.Keys(a.spans)) {
		if n := a.spans[at]; n > 0 && at < a.Until && len(all) < a.Most {
			all = append(all, SpanCount{at, n})
		}
	}
	return all
}

// Kinds are those with the most tasks, of up to limit kinds, the largest first. Tasks that another owner had fire early count until they would be near.
func (a *Ahead) Kinds(limit int) (all []KindCount) {
	for k, n := range a.kinds {
		if n > 0 {
			all = append(all, KindCount{k, n})
		}
	}
	slices.SortFunc(all, func(a, b KindCount) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), strings.Compare(a.Tasklist, b.Tasklist), strings.Compare(a.Type, b.Type))
	})
	return all[:min(limit, len(all))]
}
