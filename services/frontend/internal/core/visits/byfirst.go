package visits

// byFirst is a heap of sets with polls at rest by which of these came first.
type byFirst []*set

func (h byFirst) first(i int) uint64 { return h[i].resting.Front().Value.(*Poll).Number }

// Len implements heap.Interface, as the others do.
func (h byFirst) Len() int           { return len(h) }
func (h byFirst) Less(i, j int) bool { return h.first(i) < h.first(j) }
func (h byFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is not used: a heap has all from the start.
func (h *byFirst) Push(x any) { *h = append(*h, x.(*set)) }

// Pop implements heap.Interface.
func (h *byFirst) Pop() any {
	last := len(*h) - 1
	at := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return at
}
