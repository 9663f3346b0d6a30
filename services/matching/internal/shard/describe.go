package shard

import (
	"context"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Describe tells how a tasklist stands. Slots are those of its domain. It fails
// when ctx ends, or if the tables do.
func (s *Shard) Describe(ctx context.Context, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
	resp := &rpcv1.DescribeShardResponse{Slots: map[string]int32{}, Limits: map[string]int32{}}
	switch {
	case req.ListPollers > 0:
		return s.listPollers(ctx, req)
	case req.ListLimits > 0:
		return s.listLimits(ctx, req)
	}
	if err := s.look(ctx, func(c Core) {
		ready, polls := c.Tasklist(req.Domain, req.Tasklist)
		resp.Ready, resp.WaitingPolls = int64(ready), int64(polls)
		resp.Pollers = int64(c.Pollers(req.Domain, req.Tasklist, "", 0, s.Clock.Now()).All)
	}); err != nil {
		return nil, err
	}
	limits := slices.DeleteFunc(s.Limits(req.Domain), func(l match.Limit) bool { return l.Paused })
	if len(limits) == 0 {
		return resp, nil
	}
	refs := make([]table.Ref, len(limits))
	for i := range limits {
		refs[i] = limits[i].Ref
	}
	counts, err := s.Tables.Slots(ctx, req.Domain, refs)
	if err != nil {
		return nil, err
	}
	for i, ref := range refs {
		if typ, ok := ref.Type(); ok {
			resp.Slots[typ] = int32(counts[i])
		} else {
			resp.Limits[string(ref)] = int32(counts[i])
		}
	}
	return resp, nil
}
