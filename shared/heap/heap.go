// Package heap is a heap of values of one type, the least at the front. A value that says where its place is
// noted can be moved, and taken out of the middle, in O(log n).
//
// Owns: the order. Never does: read a clock, or lock. On failure: nothing can fail.
package heap

// Heap is empty once Less is set. Place finds where a value notes its place: 0 = it is in no heap. Heaps of which only the
// front is taken need none.
type Heap[T any] struct {
	Less  func(a, b T) bool
	Place func(T) *int
	items []T
}

// Len is how many values the heap holds.
func (h *Heap[T]) Len() int { return len(h.items) }

// All are the values, in no order but for the first. They are valid until the heap changes.
func (h *Heap[T]) All() []T { return h.items }

// First is the least value of a heap that is not empty.
func (h *Heap[T]) First() T { return h.items[0] }

// Push puts v in.
func (h *Heap[T]) Push(v T) {
	h.items = append(h.items, v)
	h.set(len(h.items)-1, v)
	h.up(len(h.items) - 1)
}

// Pop takes out the least value of a heap that is not empty.
func (h *Heap[T]) Pop() T {
	v := h.items[0]
	h.take(0)
	return v
}

// FixFirst orders the heap again after its least value has changed.
func (h *Heap[T]) FixFirst() { h.down(0) }

// Fix orders the heap again after v, which is in it, has changed.
func (h *Heap[T]) Fix(v T) { h.fix(*h.Place(v) - 1) }

// Remove takes v out, if it is in.
func (h *Heap[T]) Remove(v T) {
	if i := *h.Place(v) - 1; i >= 0 {
		h.take(i)
	}
}

func (h *Heap[T]) take(i int) {
	last := len(h.items) - 1
	v := h.items[i]
	h.set(i, h.items[last])
	var zero T
	h.items[last] = zero
	h.items = h.items[:last]
	if h.Place != nil {
		*h.Place(v) = 0
	}
	if i < last {
		h.fix(i)
	}
}

func (h *Heap[T]) fix(i int) {
	h.up(i)
	h.down(i)
}

func (h *Heap[T]) set(i int, v T) {
	h.items[i] = v
	if h.Place != nil {
		*h.Place(v) = i + 1
	}
}

func (h *Heap[T]) swap(i, j int) {
	a, b := h.items[i], h.items[j]
	h.set(i, b)
	h.set(j, a)
}

func (h *Heap[T]) up(i int) {
	for i > 0 && h.Less(h.items[i], h.items[(i-1)/2]) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h *Heap[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			return
		}
		if child+1 < len(h.items) && h.Less(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.Less(h.items[child], h.items[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
