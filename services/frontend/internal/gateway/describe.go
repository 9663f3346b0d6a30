package gateway

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// DescribeTasklist tells how a tasklist is doing (tasklists.describe).
func (g *Gateway) DescribeTasklist(c Call, req *yardv1.DescribeTasklistRequest, answer Answer) {
	g.asks(c, validate.Describe(req), answer, func(ctx context.Context) (codec.Message, error) {
		n, m := g.Partitioning.History, g.Partitioning.Matching
		parts, err := everyone(ctx, 2*n+m, func(ctx context.Context, i int) (*yardv1.DescribeTasklistResponse, error) {
			switch {
			case i < n:
				return g.describeHistory(ctx, i, c.Domain, req.Tasklist)
			case i < 2*n:
				return g.describeTimer(ctx, i-n, c.Domain, req.Tasklist)
			}
			return g.describeMatching(ctx, i-2*n, c.Domain, req.Tasklist)
		})
		if err != nil {
			return nil, err
		}
		d := gather.Description(req.Tasklist, parts)
		if severalHavePollers(parts) {
			if d.Pollers, err = g.countPollers(ctx, c.Domain, req.Tasklist); err != nil {
				return nil, err
			}
		}
		g.describePartitions(c.Domain, d)
		g.describeStops(c, d)
		g.describeCap(c, d)
		return d, nil
	})
}

// severalHavePollers tells whether the sum may count a worker more than once: it polled several partitions.
func severalHavePollers(parts []*yardv1.DescribeTasklistResponse) bool {
	n := 0
	for _, p := range parts {
		if p.Pollers > 0 {
			n++
		}
	}
	return n > 1
}

func (g *Gateway) describeHistory(ctx context.Context, p int, domain, tasklist string) (*yardv1.DescribeTasklistResponse, error) {
	d, err := g.Owners.HistoryDescribe(ctx, p, &rpcv1.DescribePartitionRequest{Domain: domain, Tasklist: tasklist})
	if err != nil {
		return nil, err
	}
	return &yardv1.DescribeTasklistResponse{
		Ready: d.Ready, Running: d.Running, Backoff: d.Backoff, UnreadBatches: d.UnreadBatches,
		LaggingLanes: d.LaggingLanes, OldestReadyMs: d.OldestReadyMs, Completed: d.Completed, Failed: d.Failed, Dead: d.Dead, Expired: d.Expired,
	}, nil
}

func (g *Gateway) describeTimer(ctx context.Context, p int, domain, tasklist string) (*yardv1.DescribeTasklistResponse, error) {
	d, err := g.Owners.TimerDescribe(ctx, p, &rpcv1.DescribeWaitingRequest{Domain: domain, Tasklist: tasklist})
	if err != nil {
		return nil, err
	}
	return &yardv1.DescribeTasklistResponse{Waiting: d.Waiting}, nil
}

// describeMatching tells of polls and slots only: what is ready is counted by
// history, which knows it whatever happened to the tables.
func (g *Gateway) describeMatching(ctx context.Context, m int, domain, tasklist string) (*yardv1.DescribeTasklistResponse, error) {
	d, err := g.Owners.MatchingDescribe(ctx, m, &rpcv1.DescribeShardRequest{Domain: domain, Tasklist: tasklist, LimitsInUse: true})
	if err != nil {
		return nil, err
	}
	out := &yardv1.DescribeTasklistResponse{WaitingPolls: d.WaitingPolls, Pollers: d.Pollers}
	use := func(ref, typ string, inUse, limit int32) {
		if inUse != 0 {
			out.Slots = append(out.Slots, &yardv1.SlotUse{Ref: ref, Type: typ, InUse: inUse, Limit: limit})
		}
	}
	for name, inUse := range d.Slots {
		use(ids.TypeLimit(name), name, inUse, catalog.Types.Of(g.Catalog, domain, name).GetMaxConcurrency())
	}
	use(ids.DomainLimit, "", d.Limits[ids.DomainLimit], g.Catalog.Domain(domain).GetMaxConcurrency())
	own := ids.TasklistLimit(tasklist)
	use(own, "", d.Limits[own], catalog.Tasklists.Of(g.Catalog, domain, tasklist).GetMaxConcurrency())
	for ref, inUse := range d.Limits {
		if name, shared := ids.SharedOfLimit(ref); shared {
			use(ref, "", inUse, catalog.Limits.Of(g.Catalog, domain, name).GetMaxConcurrency())
		}
	}
	return out, nil
}
