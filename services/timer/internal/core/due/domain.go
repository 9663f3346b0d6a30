package due

import order "github.com/yardmaster-io/yardmaster/shared/heap"

// Total is what waits of a domain: its tasks, and the bytes of their records.
type Total struct{ Tasks, Bytes int64 }

// domain is what one domain has in the table. It exists while a queue of its own does, or while it is apart.
type domain struct {
	name string
	refs int
	// total is what waits of it in all tasklists.
	total Total
	// kinds are those of its tasks that are not near, each with how many buckets count it.
	kinds map[groupHandle]int
	// tasklists are those that have kinds, each with how many.
	tasklists map[string]int
	// heap has its waiting tasks, but those that are late.
	heap heap
	// line is the number of its line in the cursor.
	line int
	// front is its place in domains.fronts.
	front int
}

// domains has all of them.
type domains struct {
	slab   *slab
	byName map[string]*domain
	// fronts are the domains that are not apart and have waiting tasks, by the key of their next one.
	fronts order.Heap[*domain]
}

func newDomains(s *slab) domains {
	return domains{
		slab: s, byName: map[string]*domain{},
		fronts: order.Heap[*domain]{
			Less:  func(a, b *domain) bool { return a.heap.head().key().Compare(b.heap.head().key()) < 0 },
			Place: func(d *domain) *int { return &d.front },
		},
	}
}

// take returns the domain with a name and counts one use more.
func (all *domains) take(name string) *domain {
	d := all.byName[name]
	if d == nil {
		d = &domain{name: name, heap: heap{slab: all.slab}}
		all.byName[name] = d
	}
	d.refs++
	return d
}

// drop counts one use less.
func (all *domains) drop(d *domain) {
	if d.refs--; d.refs == 0 {
		delete(all.byName, d.name)
	}
}

// push puts an entry of d into its heap.
func (all *domains) push(d *domain, h handle) {
	d.heap.push(h)
	if d.heap.order[0] == h {
		all.place(d)
	}
}

// removeAt takes out the entry at position i of the heap of d.
func (all *domains) removeAt(d *domain, i int) {
	d.heap.removeAt(i)
	if i == 0 {
		all.place(d)
	}
}

// place puts d where it belongs in fronts, after its next task or its line has changed.
func (all *domains) place(d *domain) {
	switch {
	case d.line != 0 || d.heap.len() == 0:
		all.fronts.Remove(d)
	case d.front == 0:
		all.fronts.Push(d)
	default:
		all.fronts.Fix(d)
	}
}
