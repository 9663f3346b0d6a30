package gather

import (
	"cmp"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Explained is what the shards know of a task that waits.
type Explained struct {
	// Limits are those that cover it, by reference, with so many holders as were asked for.
	Limits []*yardv1.LimitUse
	// Closed are those of which some shard can book nothing, and how soon it tries again, ms; Counting those that some shard counts.
	Closed   map[string]int64
	Counting map[string]bool
	// The rest is of its tasklist. Pollers may count a worker for each of several shards.
	Triggers, Pollers, Takers int64
	Polled                    bool
	LastPoller                *yardv1.Poller
	KnownForMS                int64
}

// Explain joins what the shards say of a task; nil stands for one that is silent.
func Explain(parts []*rpcv1.DescribeShardResponse, serves func(shard int) bool, holders int32) *Explained {
	out := &Explained{Closed: map[string]int64{}, Counting: map[string]bool{}}
	for m, d := range parts {
		for _, l := range d.GetTop() {
			ref := l.Use.GetRef()
			if next, known := out.Closed[ref]; l.Closed && (!known || l.NextStartMs < next) {
				out.Closed[ref] = l.NextStartMs
			}
			out.Counting[ref] = out.Counting[ref] || l.Counting
		}
		if d == nil {
			continue
		}
		out.Triggers += d.Ready
		out.Pollers += d.Pollers
		out.Polled = out.Polled || d.Polled
		if last := d.LastPoller; last != nil && better(last, d.Takers, out.LastPoller, out.Takers) {
			out.LastPoller = last
		}
		out.Takers += d.Takers
		if serves(m) {
			out.KnownForMS = cmp.Or(min(out.KnownForMS, d.KnownForMs), d.KnownForMs)
		}
	}
	out.Limits = Limits(parts, &yardv1.TopLimitsRequest{Limit: int32(limitsMax), Each: holders}).Limits
	return out
}

// limitsMax is more than cover one task: those of its domain, tasklist and type, eight that it shares with other types, and as many rates and limits per group.
const limitsMax = 100

// better reports whether a poller says more than the one before: it accepts the type, or polled later.
func better(p *yardv1.Poller, takers int64, before *yardv1.Poller, takersBefore int64) bool {
	if accepts, did := takers > 0, takersBefore > 0; before != nil && accepts != did {
		return accepts
	}
	return before == nil || p.SeenAgoMs < before.SeenAgoMs
}
