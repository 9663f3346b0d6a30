// Package paging cuts lists into pages.
//
// Owns: where a page ends, by number and by bytes. Never does: order the items, or know what a
// cursor is. On failure: nothing can fail; a page holds one item at least, however large, so that
// who asks page by page comes to the end.
package paging

// BytesMax is how many bytes the items of one answer may take. It leaves room in the least
// message that a server must take (512 KiB).
const BytesMax = 400 << 10

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
