// Package ahead counts the tasks that are due in the time to come, by spans of time, and by tasklist and type.
//
// Owns: the sums of one question. Never does: know where tasks are; the caller adds them. It is not safe for concurrent use.
package ahead

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Question says which tasks count. Times are buckets of the timer store.
type Question struct {
	// Domain, and Tasklist and Type, empty = any.
	Domain, Tasklist, Type string
	// From and Until are the first bucket that counts, and the first one that does not any more. Tasks that are due before First count there.
	From, Until, First int64
	// Width is how many buckets a span has, 1 or more; a span begins at a multiple of it.
	Width int64
	// Most is how many spans are wanted: the first ones with tasks.
	Most int
}

// Kind is a domain's tasklist and type.
type Kind struct{ Domain, Tasklist, Type string }

// Span is how many tasks are due in a span that begins at a bucket.
type Span struct{ Bucket, Tasks int64 }

// KindCount is how many tasks of a kind are due.
type KindCount struct {
	Kind
	Tasks int64
}

// Sums answer a question.
type Sums struct {
	Question
	spans map[int64]int64
	kinds map[Kind]int64
}

// New makes empty sums.
func New(q Question) *Sums { return &Sums{q, map[int64]int64{}, map[Kind]int64{}} }

// Add adds tasks of a bucket if they count, or may: a kind without a tasklist is of many, and one without a type is of many types.
func (s *Sums) Add(bucket int64, k Kind, tasks int64) {
	if bucket < s.From || bucket >= s.Until || k.Domain != s.Domain || !mayBe(k.Tasklist, s.Tasklist) || !mayBe(k.Type, s.Type) {
		return
	}
	s.spans[s.span(bucket)] += tasks
	s.kinds[k] += tasks
}

// mayBe reports whether a name may be the one that is wanted, empty = any.
func mayBe(name, wanted string) bool { return wanted == "" || name == "" || name == wanted }

// span is where the span of a bucket begins.
func (s *Sums) span(bucket int64) int64 {
	bucket = max(bucket, s.First)
	return bucket - bucket%s.Width
}

// Enough reports whether there are as many spans as are wanted before that of a bucket: then that and later ones do not count.
func (s *Sums) Enough(bucket int64) bool {
	n, span := 0, s.span(bucket)
	if len(s.spans) < s.Most {
		return false
	}
	for at, tasks := range s.spans {
		if at < span && tasks > 0 {
			n++
		}
	}
	return n >= s.Most
}

// Spans are those with tasks, in order, at most Most of them.
func (s *Sums) Spans() (all []Span) {
	for _, at := range slices.Sorted(maps.Keys(s.spans)) {
		if n := s.spans[at]; n > 0 && len(all) < s.Most {
			all = append(all, Span{at, n})
		}
	}
	return all
}

// Kinds are those with the most tasks, of up to limit kinds, the largest first.
func (s *Sums) Kinds(limit int) (all []KindCount) {
	for k, n := range s.kinds {
		if n > 0 {
			all = append(all, KindCount{k, n})
		}
	}
	slices.SortFunc(all, func(a, b KindCount) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), strings.Compare(a.Tasklist, b.Tasklist), strings.Compare(a.Type, b.Type))
	})
	return all[:min(limit, len(all))]
}
