package due

import (
	"bytes"
	"slices"
)

// Firsts keeps the first of what is added, by an order, a number of them. A caller that adds many calls Trim in between.
type Firsts[T any] struct {
	most    int
	compare func(a, b T) int
	all     []T
	// last: only what comes before it is among the first. It counts if trimmed.
	last    T
	trimmed bool
}

// NewFirsts keeps up to most of them, 1 or more.
func NewFirsts[T any](most int, compare func(a, b T) int) *Firsts[T] {
	return &Firsts[T]{most: most, compare: compare}
}

// Found is where a task is, and the size of its record.
type Found struct {
	Ref
	Bytes int
}

// Newest is the order of tasks by age, the newest first.
func Newest(a, b Found) int { return bytes.Compare(b.ID[:], a.ID[:]) }

// Add adds one, which may come twice.
func (f *Firsts[T]) Add(v T) {
	if !f.trimmed || f.compare(v, f.last) < 0 {
		f.all = append(f.all, v)
	}
}

// Trim forgets what is not among the first.
func (f *Firsts[T]) Trim() {
	if len(f.all) <= f.most {
		return
	}
	all, full := f.All()
	if f.all = all; full {
		f.last, f.trimmed = all[f.most-1], true
	}
}

// All are the first ones in order, each once; full reports whether there may be others.
func (f *Firsts[T]) All() (all []T, full bool) {
	slices.SortFunc(f.all, f.compare)
	f.all = slices.CompactFunc(f.all, func(a, b T) bool { return f.compare(a, b) == 0 })
	return f.all[:min(len(f.all), f.most)], len(f.all) >= f.most
}

// FirstOf is how many of the first of all to read together: up to tasks of them, of so many bytes at most, and one at least.
func FirstOf(all []Found, tasks, bytes int) int {
	n := 0
	for n < len(all) && n < tasks && (n == 0 || bytes >= all[n].Bytes) {
		bytes -= all[n].Bytes
		n++
	}
	return n
}
