package gateway

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/paging"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// TasklistPollers tells which workers polled a tasklist recently, page by page (tasklists.pollers).
func (g *Gateway) TasklistPollers(c Call, req *yardv1.TasklistPollersRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.Pollers(req); err != nil {
		answer(nil, err)
		return
	}
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		m := pollShard(c.Domain, req.Tasklist, g.Partitioning.Matching)
		ask := &rpcv1.DescribeShardRequest{Domain: c.Domain, Tasklist: req.Tasklist, ListPollers: req.Limit, After: req.Cursor}
		d, err := g.lists(ctx, m, ask)
		if err != nil {
			return nil, err
		}
		page, cut := paging.Cut(d.ListedPollers, int(req.Limit), paging.BytesMax, func(p *yardv1.Poller) int { return c.size(p) })
		resp := &yardv1.TasklistPollersResponse{Pollers: page, KnownForMs: d.KnownForMs}
		if n := len(page); n > 0 && (cut || d.More) {
			resp.NextCursor = page[n-1].Worker
		}
		return resp, nil
	})
}

// pollShard is the matching shard of the polls of a tasklist. There is one tasklist partition per tasklist so far: the root, 0.
func pollShard(domain, tasklist string, shards int) int {
	return ids.MatchingShard(domain, tasklist, 0, shards)
}

// lists asks a matching shard for a list.
func (g *Gateway) lists(ctx context.Context, m int, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
	d, err := retryCall(ctx, time.Time{}, func(ctx context.Context) (*rpcv1.DescribeShardResponse, error) {
		return g.Owners.MatchingDescribe(ctx, m, req)
	})
	if err == nil && !d.Listed {
		err = fault.New(fault.FailedPrecondition, "the owner of matching shard %d is of a version that cannot tell: end the upgrade first", m)
	}
	return d, err
}
