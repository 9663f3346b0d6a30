// Package fair is a queue in which domains take turns.
//
// Owns: the order in which what waits is taken. Never does: I/O, reading a clock. On failure:
// nothing can fail.
//
// One domain that asks for a hundred thousand things must not hold up the one thing that another asks for
// (I14), so a domain is served in shares: deficit round robin with equal quanta (Shreedhar and
// Varghese, 1995), where each item costs one.
package fair

// Share is how many items of a domain are taken before it is the next one's turn.
const Share = 50

// Queue holds items by domain, first come first served within one. The zero value is empty.
type Queue[T any] struct {
	waiting map[string][]T
	domains []string // the keys of waiting, in the order of their turns
}

// Add appends an item.
func (q *Queue[T]) Add(domain string, item T) {
	if q.waiting == nil {
		q.waiting = map[string][]T{}
	}
	if len(q.waiting[domain]) == 0 {
		q.domains = append(q.domains, domain)
	}
	q.waiting[domain] = append(q.waiting[domain], item)
}

// Empty tells whether nothing waits.
func (q *Queue[T]) Empty() bool { return len(q.domains) == 0 }

// Take takes up to most items.
func (q *Queue[T]) Take(most int) (items []T) {
	for len(q.domains) > 0 && len(items) < most {
		domain := q.domains[0]
		q.domains = q.domains[1:]
		all := q.waiting[domain]
		n := min(len(all), Share, most-len(items))
		items = append(items, all[:n]...)
		if n < len(all) {
			q.waiting[domain] = all[n:]
			q.domains = append(q.domains, domain)
		} else {
			delete(q.waiting, domain)
		}
	}
	return items
}
