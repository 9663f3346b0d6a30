package match

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// policyTurn is the turn as the policies of limits see it.
func (s *Shard) policyTurn() overflow.Turn {
	return overflow.Turn{Now: s.now.Mono, MS: s.now.MS, Polled: func(l *limit.List, typ string) bool { return s.listOf(l).polledFor(typ) }}
}

// polledFor reports whether a poll waits for a type here. One of a tasklist with several partitions may wait in any of them.
func (l *list) polledFor(typ string) bool {
	return l.node.Spread() || l.queue.Takes(typ) ||
		slices.ContainsFunc(l.queue.Lines(), func(line *pairing.Line[*list, grab.Grant]) bool { return line.First().Accepts(typ) })
}

// sweepPolicies has the policies act of limits that have been full for long enough.
func (s *Shard) sweepPolicies(d *domain) {
	if !d.Open || s.drain.on { // also while a call is under way: in a busy domain one always is
		return
	}
	if r := d.policies.Sweep(s.policyTurn(), d.Domain, s.cfg.Partitions); r != nil {
		s.questions.AskHolders(d.Name, r)
	}
}

// wants are the wants of a call about a domain for triggers that are to be rejected, of so many columns at most.
func (s *Shard) wants(domain string, c *limit.Call, most int) []overflow.Want {
	return s.domains[domain].policies.Wants(s.policyTurn(), c, most, s.drain.on)
}

// spilled takes in what came out of the tables to be rejected.
func (s *Shard) spilled(c *call, w *overflow.Want, got *table.Taken, states []table.LimitState) {
	l := s.listOf(w.List)
	var chunks []table.Chunk
	for _, b := range got.Batches {
		t := taken{List: l, Chunk: b.Chunk(l.Tasklist), Stale: c.Stale}
		if !s.withhold(&t) {
			chunks = append(chunks, t.Chunk)
		}
	}
	if !s.drain.on {
		chunks = l.domain.policies.Reject(s.policyTurn(), w.Limit, &c.Call, states, chunks, s.addStop)
	}
	for _, chunk := range chunks {
		s.arrivals.PutBack(l, chunk)
	}
	for _, h := range got.Heads {
		l.source.Saw(h)
	}
	l.Reconsider()
	l.Changed()
}

// addStop has a task or an attempt stopped; false if it is refused.
func (s *Shard) addStop(st grab.StopRequest) bool {
	asked := s.grabs.AddStop(st)
	if asked == grab.Malformed {
		s.fx.Counts.Malformed++
	}
	return asked != grab.Dropped
}

// stopped applies one verdict about a stop.
func (s *Shard) stopped(st *grab.Stopped) {
	overflow.Stopped(st, s.now.Mono)
	switch {
	case st.WaitsOn():
		s.returnStop(&st.StopRequest)
	case st.Refused != "":
	case st.Displace:
		s.fx.Counts.Displaced++
	default:
		s.fx.Counts.Rejected++
	}
}
