package gateway

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/paging"

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
				d, err := g.Owners.TimerDescribe(ctx, i-n, &rpcv1.DescribeWaitingRequest{Domain: c.Domain, Tasklist: req.Tasklist})
				return &yardv1.DescribeTasklistResponse{Waiting: d.GetWaiting()}, err
			}
			return g.describeMatching(ctx, i-2*n, c.Domain, req.Tasklist)
		})
		if err != nil {
			return nil, err
		}
		d := gather.Description(req.Tasklist, parts)
		if gather.SeveralHavePollers(parts) {
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

// ListQueues tells what history has in memory of each queue, by partition (admin queues.list). One that does not answer says so.
func (g *Gateway) ListQueues(c Call, req *yardv1.ListQueuesRequest, answer Answer) {
	g.administer(c.Deadline, validate.Queues(req, g.Partitioning.History), answer, func(ctx context.Context) (codec.Message, error) {
		first := int(req.Partition)
		n := min(int(req.Partitions), g.Partitioning.History-first)
		parts, errs := answers(ctx, n, func(ctx context.Context, i int) (*rpcv1.DescribePartitionResponse, error) {
			return g.Owners.HistoryDescribe(ctx, first+i, &rpcv1.DescribePartitionRequest{Domain: req.Domain, Queues: req.Limit, Domains: req.Domains})
		})
		all := gather.Queues(first, parts, errs)
		for i, p := range all {
			p.Submits = g.placement.Share(first + i).String()
		}
		page, more := paging.Cut(all, n, paging.BytesMax, func(p *yardv1.PartitionQueues) int { return c.size(p) })
		resp := &yardv1.ListQueuesResponse{Partitions: page}
		if more {
			resp.NextPartition = int32(first + len(page))
		}
		return resp, nil
	})
}
