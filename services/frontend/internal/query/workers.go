package query

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// ListWorkers tells which workers of the domain are alive, and what they run, page by page (workers.list). Every owner of a history
// partition hears all of them, and knows what they run of its partition.
func (q *Queries) ListWorkers(c call.Call, req *yardv1.ListWorkersRequest, answer call.Answer) {
	q.Run.Ask(c, validate.Workers(req), answer, func(ctx context.Context) (codec.Message, error) {
		all, err := q.Workers(ctx, &rpcv1.ListWorkersRequest{Domain: c.Domain, After: req.Cursor, Limit: req.Limit})
		if err != nil {
			return nil, err
		}
		for _, w := range all.Workers {
			w.Drain = q.Catalog.DrainedWorker(c.Domain, w.WorkerId)
		}
		page, next := call.Cut(c, all.Workers, req.Limit, all.More, (*yardv1.LiveWorker).GetWorkerId)
		return &yardv1.ListWorkersResponse{Workers: page, NextCursor: next, KnownForMs: all.KnownForMs}, nil
	})
}

// Workers asks all owners of partitions.
func (q *Queries) Workers(ctx context.Context, ask *rpcv1.ListWorkersRequest) (*rpcv1.ListWorkersResponse, error) {
	parts, err := owners.Same(ctx, q.Partitioning.History, q.Tasks.HistoryWorkers, ask)
	if err != nil {
		return nil, err
	}
	return gather.Workers(parts), nil
}

// TasklistPollers tells which workers polled a tasklist recently, page by page (tasklists.pollers).
func (q *Queries) TasklistPollers(c call.Call, req *yardv1.TasklistPollersRequest, answer call.Answer) {
	q.Run.Ask(c, validate.Pollers(req), answer, func(ctx context.Context) (codec.Message, error) {
		ask := &rpcv1.DescribeShardRequest{Domain: c.Domain, Tasklist: req.Tasklist, ListPollers: req.Limit, After: req.Cursor}
		first, n := 0, q.Partitioning.Matching // where it has several partitions, some may be of a larger count before
		if q.Catalog.Partitions(c.Domain, req.Tasklist) == 1 {
			first, n = ids.MatchingShard(c.Domain, req.Tasklist, 0, n), 1
		}
		d, err := q.pollersOf(ctx, first, n, ask)
		if err != nil {
			return nil, err
		}
		page, next := call.Cut(c, d.ListedPollers, req.Limit, d.More, (*yardv1.Poller).GetWorker)
		return &yardv1.TasklistPollersResponse{Pollers: page, NextCursor: next, KnownForMs: d.KnownForMs}, nil
	})
}

// pollersOf asks n shards, from the first one on.
func (q *Queries) pollersOf(ctx context.Context, first, n int, ask *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
	parts, err := owners.Every(ctx, n, func(ctx context.Context, i int) (*rpcv1.DescribeShardResponse, error) {
		return q.Tasks.MatchingDescribe(ctx, first+i, ask)
	})
	switch {
	case err != nil:
		return nil, err
	case n == 1: // in the order of the shard
		return parts[0], nil
	}
	return gather.Pollers(parts), nil
}

// countPollers counts the workers that polled a tasklist, each once, though several shards know it.
func (q *Queries) countPollers(ctx context.Context, domain, tasklist string) (n int64, err error) {
	ask := &rpcv1.DescribeShardRequest{Domain: domain, Tasklist: tasklist, ListPollers: validate.ListMax}
	for {
		d, err := q.pollersOf(ctx, 0, q.Partitioning.Matching, ask)
		if err != nil {
			return 0, err
		}
		n += int64(len(d.ListedPollers))
		if len(d.ListedPollers) == 0 || !d.More {
			return n, nil
		}
		ask.After = d.ListedPollers[len(d.ListedPollers)-1].Worker
	}
}
