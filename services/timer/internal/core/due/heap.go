package due

// arity of the heap: four children share a cache line of handles, and the tree
// is half as deep as a binary one, which is what a pop costs.
const arity = 4

// heap orders handles by the Key of their entries, the first to fire on top.
// Each entry knows its position, so that one that fires early is moved at once.
type heap struct {
	slab  *slab
	order []handle
}

func (h *heap) len() int { return len(h.order) }

// head is the first to fire; the heap is not empty.
func (h *heap) head() *entry { return h.slab.at(h.order[0]) }

func (h *heap) push(x handle) {
	h.order = append(h.order, x)
	h.up(len(h.order) - 1)
}

// removeAt takes out the entry at position i; the caller gives it its new place.
func (h *heap) removeAt(i int) {
	n := len(h.order) - 1
	moved := h.order[n]
	h.order = h.order[:n]
	if i == n {
		return
	}
	h.set(i, moved)
	h.down(i)
	h.up(int(h.slab.at(moved).place))
}

func (h *heap) set(i int, x handle) {
	h.order[i] = x
	h.slab.at(x).place = place(i)
}

func (h *heap) up(i int) {
	x := h.order[i]
	key := h.slab.at(x).key()
	for i > 0 {
		parent := (i - 1) / arity
		if key.Compare(h.slab.at(h.order[parent]).key()) >= 0 {
			break
		}
		h.set(i, h.order[parent])
		i = parent
	}
	h.set(i, x)
}

func (h *heap) down(i int) {
	x := h.order[i]
	key := h.slab.at(x).key()
	for {
		first := i*arity + 1
		if first >= len(h.order) {
			break
		}
		least, leastKey := first, h.slab.at(h.order[first]).key()
		for c := first + 1; c < min(first+arity, len(h.order)); c++ {
			if k := h.slab.at(h.order[c]).key(); k.Compare(leastKey) < 0 {
				least, leastKey = c, k
			}
		}
		if key.Compare(leastKey) <= 0 {
			break
		}
		h.set(i, h.order[least])
		i = least
	}
	h.set(i, x)
}
