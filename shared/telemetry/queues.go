package telemetry

import (
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
)

// Queues are the instruments of one metric by domain and tasklist, as many as signals.SeriesMax, and
// signals.DomainSeriesMax of one domain: tenants choose the names of tasklists, and neither a page nor its
// reader has room for all of them. A later one shares the instrument signals.Other, that of its domain while
// there is room. It is safe for concurrent use; to find an instrument takes one look into a map.
type Queues[I any] struct {
	bind func(domain, tasklist string) I

	mu      sync.RWMutex
	of      map[queue]I
	domains map[string]int // series of each domain
	series  int
}

type queue struct{ domain, tasklist string }

// CountersByQueue are those of a metric by domain and tasklist.
func (m *Metrics) CountersByQueue(of signals.Metric) *Queues[*Counter] {
	return newQueues(func(domain, tasklist string) *Counter { return m.Counter(of, domain, tasklist) })
}

// CountersByDomain are those of a metric by domain; their tasklist is "".
func (m *Metrics) CountersByDomain(of signals.Metric) *Queues[*Counter] {
	return newQueues(func(domain, _ string) *Counter { return m.Counter(of, domain) })
}

// HistogramsByQueue are those of a metric by domain and tasklist.
func (m *Metrics) HistogramsByQueue(of signals.Metric) *Queues[*Histogram] {
	return newQueues(func(domain, tasklist string) *Histogram { return m.Histogram(of, domain, tasklist) })
}

func newQueues[I any](bind func(domain, tasklist string) I) *Queues[I] {
	return &Queues[I]{bind: bind, of: map[queue]I{}, domains: map[string]int{}}
}

// Of returns the instrument of a tasklist.
func (q *Queues[I]) Of(domain, tasklist string) I {
	key := queue{domain, tasklist}
	q.mu.RLock()
	i, ok := q.of[key]
	q.mu.RUnlock()
	if ok {
		return i
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.add(key)
}

// add makes room for a tasklist, or finds it another place. A tasklist that shares a series is not remembered, or
// names that a tenant makes up would fill the memory.
func (q *Queues[I]) add(key queue) I {
	if q.domains[key.domain] >= signals.DomainSeriesMax {
		key.tasklist = signals.Other
	}
	if _, known := q.of[key]; !known && q.series >= signals.SeriesMax {
		key = queue{signals.Other, signals.Other}
	}
	if i, ok := q.of[key]; ok {
		return i
	}
	i := q.bind(key.domain, key.tasklist)
	q.of[key] = i
	q.domains[key.domain]++
	q.series++
	return i
}
