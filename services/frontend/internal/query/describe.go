package query

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// DescribeTasklist tells how a tasklist is doing (tasklists.describe).
func (q *Queries) DescribeTasklist(c call.Call, req *yardv1.DescribeTasklistRequest, answer call.Answer) {
	q.Run.Ask(c, validate.Describe(req), answer, func(ctx context.Context) (codec.Message, error) {
		n, m := q.Partitioning.History, q.Partitioning.Matching
		parts, err := owners.Every(ctx, 2*n+m, func(ctx context.Context, i int) (*yardv1.DescribeTasklistResponse, error) {
			switch {
			case i < n:
				return q.describeHistory(ctx, i, c.Domain, req.Tasklist)
			case i < 2*n:
				d, err := q.Tasks.TimerDescribe(ctx, i-n, &rpcv1.DescribeWaitingRequest{Domain: c.Domain, Tasklist: req.Tasklist})
				return &yardv1.DescribeTasklistResponse{Waiting: d.GetWaiting()}, err
			}
			return q.describeMatching(ctx, i-2*n, c.Domain, req.Tasklist)
		})
		if err != nil {
			return nil, err
		}
		d := gather.Description(req.Tasklist, parts)
		if gather.SeveralHavePollers(parts) {
			if d.Pollers, err = q.countPollers(ctx, c.Domain, req.Tasklist); err != nil {
				return nil, err
			}
		}
		q.describePartitions(c.Domain, d)
		q.describeStops(c, d)
		q.describeCap(c, d)
		return d, nil
	})
}

func (q *Queries) describeHistory(ctx context.Context, p int, domain, tasklist string) (*yardv1.DescribeTasklistResponse, error) {
	d, err := q.Tasks.HistoryDescribe(ctx, p, &rpcv1.DescribePartitionRequest{Domain: domain, Tasklist: tasklist})
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
func (q *Queries) describeMatching(ctx context.Context, m int, domain, tasklist string) (*yardv1.DescribeTasklistResponse, error) {
	d, err := q.Tasks.MatchingDescribe(ctx, m, &rpcv1.DescribeShardRequest{Domain: domain, Tasklist: tasklist, LimitsInUse: true})
	if err != nil {
		return nil, err
	}
	out := &yardv1.DescribeTasklistResponse{WaitingPolls: d.WaitingPolls, Pollers: d.Pollers, PerPartition: d.Partitions}
	use := func(ref, typ string, inUse, limit int32) {
		if inUse != 0 {
			out.Slots = append(out.Slots, &yardv1.SlotUse{Ref: ref, Type: typ, InUse: inUse, Limit: limit})
		}
	}
	for name, inUse := range d.Slots {
		use(ids.TypeLimit(name), name, inUse, catalog.Types.Of(q.Catalog, domain, name).GetMaxConcurrency())
	}
	use(ids.DomainLimit, "", d.Limits[ids.DomainLimit], q.Catalog.Domain(domain).GetMaxConcurrency())
	own := ids.TasklistLimit(tasklist)
	use(own, "", d.Limits[own], catalog.Tasklists.Of(q.Catalog, domain, tasklist).GetMaxConcurrency())
	for ref, inUse := range d.Limits {
		if name, shared := ids.SharedOfLimit(ref); shared {
			use(ref, "", inUse, catalog.Limits.Of(q.Catalog, domain, name).GetMaxConcurrency())
		}
	}
	return out, nil
}

// stoppedMax is how many names of paused types a description has, and how many of drained ones, and of groups.
const stoppedMax = 100

// describeStops puts into a description what is paused, and what is drained.
func (q *Queries) describeStops(c call.Call, d *yardv1.DescribeTasklistResponse) {
	now := c.ServerNow().UnixMilli()
	paused, drained := catalog.Pauses.Of(q.Catalog, c.Domain, now), catalog.Drains.Of(q.Catalog, c.Domain, now)
	d.Pause, d.PausedTypes, d.PausedGroups = cmp.Or(paused.Domain, paused.Tasklists[d.Tasklist]), firstNames(paused.Types), firstNames(paused.Groups)
	d.Drain, d.DrainedTypes, d.DrainedGroups = cmp.Or(drained.Domain, drained.Tasklists[d.Tasklist]), firstNames(drained.Types), firstNames(drained.Groups)
}

func firstNames(all map[string]*yardv1.Pause) []string {
	names := slices.Sorted(maps.Keys(all))
	return names[:min(len(names), stoppedMax)]
}

// describePartitions tells over how many partitions a tasklist is spread.
func (q *Queries) describePartitions(domain string, d *yardv1.DescribeTasklistResponse) {
	if n := q.Catalog.Partitions(domain, d.Tasklist); n > 1 {
		d.Partitions = int32(n)
	} else {
		d.PerPartition = nil // the sums are those of its only one
	}
	if l := catalog.Tasklists.Of(q.Catalog, domain, d.Tasklist); l.GetPartitionsMax() > 0 {
		least, most := catalog.PartitionsBetween(l)
		d.PartitionsLeast, d.PartitionsMax = int32(least), int32(most)
	}
}

// describeCap puts into a description how full the queue is.
func (q *Queries) describeCap(c call.Call, d *yardv1.DescribeTasklistResponse) {
	if d.MaxQueued = catalog.Tasklists.Of(q.Catalog, c.Domain, d.Tasklist).GetMaxQueued(); d.MaxQueued > 0 {
		d.Queued = q.Queued(c.Domain, d.Tasklist)
	}
}
