package api

import (
	"sync"

	"github.com/nats-io/nats.go/micro"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// tally counts the requests of one verb.
type tally struct {
	verb     string
	metrics  *telemetry.Metrics
	requests *telemetry.Counter

	mu     sync.Mutex
	failed map[fault.Code]*telemetry.Counter
}

func newTally(m *telemetry.Metrics, verb string) *tally {
	return &tally{verb: verb, metrics: m, requests: m.Counter(signals.Requests, verb), failed: map[fault.Code]*telemetry.Counter{}}
}

// fail counts a request that was answered with an error. The codes are a closed list, so the counters are few.
func (t *tally) fail(code fault.Code) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.failed[code]
	if n == nil {
		n = t.metrics.Counter(signals.RequestsFailed, t.verb, string(code))
		t.failed[code] = n
	}
	n.Add(1)
}

// stats is what STATS tells of an endpoint beside micro's own numbers.
type stats struct {
	// Errors are all requests answered with an error, by code. Micro's num_errors are those of them that were
	// answered before the handler had returned: it cannot count the others.
	Errors map[fault.Code]int64 `json:"errors"`
}

func (t *tally) stats() stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := stats{Errors: make(map[fault.Code]int64, len(t.failed))}
	for code, n := range t.failed {
		s.Errors[code] = n.Value()
	}
	return s
}

// statsOf tells of the endpoints by their names.
func statsOf(all []endpoint) micro.StatsHandler {
	tallies := make(map[string]*tally, len(all))
	for _, e := range all {
		tallies[e.name()] = e.tally
	}
	return func(e *micro.Endpoint) any { return tallies[e.Name].stats() }
}
