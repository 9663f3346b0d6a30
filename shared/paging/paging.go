// Package paging cuts lists into pages, and joins the pages of several sources.
//
// Owns: where a page ends, by number and by bytes. Never does: order the items, or know what a
// cursor is. On failure: nothing can fail; a page holds one item at least, however large, so that
// who asks page by page comes to the end.
package paging

import "slices"

// BytesMax is how many bytes the items of one answer may take. It leaves room in the least
// message that a server must take (512 KiB).
const BytesMax = 400 << 10

// Far begins the cursors of the last pages of a list of tasks: those that wait for long, of which no list in order is in memory.
const Far = "~"

// itemOverhead is what an item costs in a list besides its own bytes.
const itemOverhead = 8

// Cut returns the first of items, at most limit of them and no more than bytesMax together, and
// whether any are left. Size is what one takes, in bytes.
func Cut[T any](items []T, limit, bytesMax int, size func(T) int) (page []T, more bool) {
	bytes := 0
	for i, item := range items {
		if bytes += size(item) + itemOverhead; i > 0 && bytes > bytesMax || i >= limit {
			return items[:i], true
		}
	}
	return items, false
}

// Page is a part of what one source lists, in order; More: there is more behind it.
type Page[T any] struct {
	All  []T
	More bool
}

// Merge joins the pages of several sources. The result ends where the first page ends that has more behind it: of what comes later not all
// is known. Join makes one of two that are equal; nil = there are none.
func Merge[T any](pages []Page[T], compare func(a, b T) int, join func(a, b T) T) (all []T, more bool) {
	var found []T
	var end T
	for _, p := range pages {
		found = append(found, p.All...)
		if n := len(p.All); n > 0 && p.More {
			if last := p.All[n-1]; !more || compare(last, end) < 0 {
				end = last
			}
			more = true
		}
	}
	slices.SortStableFunc(found, compare)
	for _, v := range found {
		last := len(all) - 1
		switch {
		case more && compare(v, end) > 0:
			return all, more
		case join != nil && last >= 0 && compare(all[last], v) == 0:
			all[last] = join(all[last], v)
		default:
			all = append(all, v)
		}
	}
	return all, more
}
