package query

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// Overview carries out the verbs that show the whole cluster.
type Overview struct{ Deps }

// TopDomains tells which domains do and have most, and for which limits tasks wait (admin domains.top). Those who do not answer are named: who asks this may
// do so because something is down.
func (q *Overview) TopDomains(c call.Call, req *yardv1.TopDomainsRequest, answer call.Answer) {
	q.Run.Administer(c, validate.TopDomains(req), answer, func(ctx context.Context) (codec.Message, error) {
		n, m := q.Partitioning.History, q.Partitioning.Matching
		parts, _ := owners.Some(ctx, 2*n+m, topWait, func(ctx context.Context, i int) (*yardv1.TopDomainsResponse, error) {
			switch {
			case i < n:
				d, err := q.Tasks.HistoryDescribe(ctx, i, &rpcv1.DescribePartitionRequest{Top: req})
				return d.GetTop(), err
			case i < 2*n:
				d, err := q.Tasks.TimerDescribe(ctx, i-n, &rpcv1.DescribeWaitingRequest{Top: req})
				return d.GetTop(), err
			}
			d, err := q.Tasks.MatchingDescribe(ctx, i-2*n, &rpcv1.DescribeShardRequest{Top: req})
			return d.GetDomains(), err
		})
		return gather.TopDomains(gather.TopParts{History: parts[:n], Timers: parts[n : 2*n], Shards: parts[2*n:]}, req, q.Catalog.Weight), nil
	})
}

// ListQueues tells what history has in memory of each queue, by partition (admin queues.list). One that does not answer says so.
func (q *Overview) ListQueues(c call.Call, req *yardv1.ListQueuesRequest, answer call.Answer) {
	q.Run.Administer(c, validate.Queues(req, q.Partitioning.History), answer, func(ctx context.Context) (codec.Message, error) {
		first := int(req.Partition)
		n := min(int(req.Partitions), q.Partitioning.History-first)
		parts, errs := owners.Some(ctx, n, topWait, func(ctx context.Context, i int) (*rpcv1.DescribePartitionResponse, error) {
			return q.Tasks.HistoryDescribe(ctx, first+i, &rpcv1.DescribePartitionRequest{Domain: req.Domain, Queues: req.Limit, Domains: req.Domains})
		})
		all := gather.Queues(first, parts, errs)
		for i, p := range all {
			p.Submits = q.Share(first + i).String()
		}
		page, more := call.Fit(c, all, n)
		resp := &yardv1.ListQueuesResponse{Partitions: page}
		if more {
			resp.NextPartition = int32(first + len(page))
		}
		return resp, nil
	})
}
