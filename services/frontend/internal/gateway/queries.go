package gateway

import "sync"

// queries counts the queries, administrative requests and waits under way, by domain; the
// administration counts as one. A domain alone may have three quarters of all. The last
// quarter is for those that have few: no domain's waits keep another from asking (I14).
type queries struct {
	max, few int
	crowded  int // from here on only those with few may enter

	mu    sync.Mutex
	total int
	of    map[string]int
}

func newQueries(most int) *queries {
	return &queries{max: most, few: max(1, most/16), crowded: most - most/4, of: map[string]int{}}
}

// enter counts one in, or refuses it.
func (q *queries) enter(domain string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.total >= q.max || q.total >= q.crowded && q.of[domain] >= q.few {
		return false
	}
	q.total++
	q.of[domain]++
	return true
}

// leave counts one out.
func (q *queries) leave(domain string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.total--
	if q.of[domain]--; q.of[domain] == 0 {
		delete(q.of, domain)
	}
}
