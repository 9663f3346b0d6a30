// Package deadline is a heap of things to look at again at a time, from which
// any of them can be taken out or moved in O(log n): a lease that ends with its
// task must not stay behind, or the heap would hold minutes of finished tasks.
//
// Owns: the order. Never does: read a clock. On failure: nothing can fail.
package deadline

// Entry is embedded in what a heap holds; its zero value is in no heap.
type Entry struct {
	at    int64
	index int // 1-based; 0 = not in the heap
}

// Heap orders values by time. Entry finds the Entry inside a value.
type Heap[T any] struct {
	Entry func(T) *Entry
	items []T
}

// Set puts v in at the time, or moves it there; a time of 0 takes it out.
func (h *Heap[T]) Set(v T, at int64) {
	e := h.Entry(v)
	switch {
	case at == 0:
		h.Remove(v)
	case e.index == 0:
		e.at = at
		h.items = append(h.items, v)
		e.index = len(h.items)
		h.up(e.index - 1)
	case e.at != at:
		e.at = at
		h.up(e.index - 1)
		h.down(e.index - 1)
	}
}

// Remove takes v out, if it is in.
func (h *Heap[T]) Remove(v T) {
	e := h.Entry(v)
	if e.index == 0 {
		return
	}
	i, last := e.index-1, len(h.items)-1
	h.swap(i, last)
	var zero T
	h.items[last] = zero
	h.items = h.items[:last]
	e.index = 0
	if i < last {
		h.up(i)
		h.down(i)
	}
}

// Has tells whether v is in.
func (h *Heap[T]) Has(v T) bool { return h.Entry(v).index > 0 }

// Next is the earliest time; ok is false where the heap is empty.
func (h *Heap[T]) Next() (at int64, ok bool) {
	if len(h.items) == 0 {
		return 0, false
	}
	return h.Entry(h.items[0]).at, true
}

// PopDue takes out the earliest value if its time is at or before now.
func (h *Heap[T]) PopDue(now int64) (v T, ok bool) {
	if len(h.items) == 0 || h.Entry(h.items[0]).at > now {
		return v, false
	}
	v = h.items[0]
	h.Remove(v)
	return v, true
}

// Len is how many values the heap holds.
func (h *Heap[T]) Len() int { return len(h.items) }

func (h *Heap[T]) less(i, j int) bool { return h.Entry(h.items[i]).at < h.Entry(h.items[j]).at }

func (h *Heap[T]) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.Entry(h.items[i]).index, h.Entry(h.items[j]).index = i+1, j+1
}

func (h *Heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *Heap[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			return
		}
		if child+1 < len(h.items) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
