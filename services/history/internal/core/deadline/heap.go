// Package deadline is a heap of things to look at again at a time, from which
// any of them can be taken out or moved in O(log n): a lease that ends with its
// task must not stay behind, or the heap would hold minutes of finished tasks.
//
// Owns: the order. Never does: read a clock. On failure: nothing can fail.
package deadline

import "github.com/yardmaster-io/yardmaster/shared/heap"

// Entry is embedded in what a heap holds; its zero value is in no heap.
type Entry struct {
	at    int64
	place int
}

// Heap orders values by time. Entry finds the Entry inside a value.
type Heap[T any] struct {
	Entry func(T) *Entry
	heap  heap.Heap[T]
}

// Set puts v in at the time, or moves it there; a time of 0 takes it out.
func (h *Heap[T]) Set(v T, at int64) {
	e := h.Entry(v)
	if h.heap.Less == nil {
		h.heap.Less = func(a, b T) bool { return h.Entry(a).at < h.Entry(b).at }
		h.heap.Place = func(v T) *int { return &h.Entry(v).place }
	}
	switch {
	case at == 0:
		h.Remove(v)
	case e.place == 0:
		e.at = at
		h.heap.Push(v)
	case e.at != at:
		e.at = at
		h.heap.Fix(v)
	}
}

// Remove takes v out, if it is in.
func (h *Heap[T]) Remove(v T) {
	if h.Has(v) {
		h.heap.Remove(v)
	}
}

// Has reports whether v is in.
func (h *Heap[T]) Has(v T) bool { return h.Entry(v).place > 0 }

// Next is the earliest time; ok is false where the heap is empty.
func (h *Heap[T]) Next() (at int64, ok bool) {
	if h.Len() == 0 {
		return 0, false
	}
	return h.Entry(h.heap.First()).at, true
}

// PopDue takes out the earliest value if its time is at or before now.
func (h *Heap[T]) PopDue(now int64) (v T, ok bool) {
	if at, some := h.Next(); !some || at > now {
		return v, false
	}
	return h.heap.Pop(), true
}

// Len is how many values the heap holds.
func (h *Heap[T]) Len() int { return h.heap.Len() }
