package match

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// assignRanks assigns ranks to the triggers of a chunk that is to be stored, if groups share its column.
func (s *Shard) assignRanks(a *arrival) {
	if a.Rank == 0 && a.ranks == nil {
		head, _ := a.list.index.Waits(fairness.Shared(a.Column))
		a.ranks = a.list.ranks.Assign(&a.Chunk, a.groups, head, s.catalog.Weights(a.Domain))
	}
}

// keepsRanks reports whether something waits in a column, or is on its way to one.
func (l *list) keepsRanks(at table.Column) bool {
	_, waits := l.index.Waits(at)
	return waits || l.putting > 0
}

// withoutIdle has the triggers of groups of weight 0 arrive behind all others, and returns the rest.
func (s *Shard) withoutIdle(t *Triggers, l *list, from *delivery) (packed []byte, groups []string) {
	weights := fairness.Weights(s.catalog.Weights(t.Domain))
	if len(weights) == 0 || !slices.ContainsFunc(t.Groups, weights.Idle) {
		return t.Packed, t.Groups
	}
	behind := arrival{list: l, from: from, groups: t.Groups, Chunk: table.Chunk{
		Tasklist: l.Tasklist, Column: table.Column{Priority: table.PriorityIdle, Type: t.Type}, ReadyAt: fairness.IdleFrom + t.ReadyAt,
		Cost: table.Cost(t.Cost), Triggers: t.Packed,
	}}
	rest := behind
	behind.keep(func(i int) bool { return weights.Idle(t.Groups[i]) })
	rest.keep(func(i int) bool { return !weights.Idle(t.Groups[i]) })
	behind.groups, behind.ranks = nil, slices.Repeat([]fairness.Rank{{At: behind.ReadyAt, Age: behind.ReadyAt}}, behind.Len())
	from.left++
	s.arrivals = append(s.arrivals, behind)
	return rest.Triggers, rest.groups
}
