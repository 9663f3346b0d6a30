package gateway

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// TasklistPollers tells which workers polled a tasklist recently, page by page (tasklists.pollers).
func (g *Gateway) TasklistPollers(c Call, req *yardv1.TasklistPollersRequest, answer Answer) {
	g.asks(c, validate.Pollers(req), answer, func(ctx context.Context) (codec.Message, error) {
		ask := &rpcv1.DescribeShardRequest{Domain: c.Domain, Tasklist: req.Tasklist, ListPollers: req.Limit, After: req.Cursor}
		d, err := g.pollersPage(ctx, ask)
		if err != nil {
			return nil, err
		}
		page, next := cut(c, d.ListedPollers, req.Limit, d.More, (*yardv1.Poller).GetWorker)
		return &yardv1.TasklistPollersResponse{Pollers: page, NextCursor: next, KnownForMs: d.KnownForMs}, nil
	})
}

// pollersPage asks the shard of a tasklist, or all shards where it has several partitions: some may be of a larger count before.
func (g *Gateway) pollersPage(ctx context.Context, ask *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
	if g.Catalog.Partitions(ask.Domain, ask.Tasklist) == 1 {
		return g.lists(ctx, ids.MatchingShard(ask.Domain, ask.Tasklist, 0, g.Partitioning.Matching), ask)
	}
	return g.pollersOfAll(ctx, ask)
}

// pollersOfAll asks all shards.
func (g *Gateway) pollersOfAll(ctx context.Context, ask *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
	parts, err := everyone(ctx, g.Partitioning.Matching, func(ctx context.Context, m int) (*rpcv1.DescribeShardResponse, error) {
		return g.lists(ctx, m, ask)
	})
	if err != nil {
		return nil, err
	}
	return gather.Pollers(parts), nil
}

// countPollers counts the workers that polled a tasklist, each once, though several shards know it.
func (g *Gateway) countPollers(ctx context.Context, domain, tasklist string) (n int64, err error) {
	ask := &rpcv1.DescribeShardRequest{Domain: domain, Tasklist: tasklist, ListPollers: validate.ListMax}
	for {
		d, err := g.pollersOfAll(ctx, ask)
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

// lists asks a matching shard for a list.
func (g *Gateway) lists(ctx context.Context, m int, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
	return retryCall(ctx, time.Time{}, func(ctx context.Context) (*rpcv1.DescribeShardResponse, error) {
		return g.Owners.MatchingDescribe(ctx, m, req)
	})
}
