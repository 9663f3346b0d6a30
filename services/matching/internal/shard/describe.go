package shard

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// namedMax bounds the limits that a question may name.
const namedMax = 100

// Describe tells how a tasklist stands. Slots are those of its domain, of the limits that are named, or in use here: a domain may have tens of
// thousands, and Redis belongs to all domains (I14). It fails when ctx ends, or if the tables do.
func (s *Shard) Describe(ctx context.Context, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
	resp := &rpcv1.DescribeShardResponse{Slots: map[string]int32{}, Limits: map[string]int32{}}
	switch {
	case req.ListPollers > 0:
		return s.listPollers(ctx, req)
	case req.ListLimits > 0:
		return s.listLimits(ctx, req)
	case req.Top != nil:
		return s.fullLimits(ctx, req.Top)
	case req.Explain != nil:
		return s.explain(ctx, req)
	}
	var refs []table.Ref
	if err := s.look(ctx, req.Domain, func(c Core) {
		for _, p := range c.Tasklist(req.Domain, req.Tasklist) {
			resp.Ready, resp.WaitingPolls = resp.Ready+int64(p.Ready), resp.WaitingPolls+int64(p.Polls)
			resp.Partitions = append(resp.Partitions, &yardv1.TasklistPartition{Partition: int32(p.Partition), Ready: int64(p.Ready), WaitingPolls: int64(p.Polls)})
		}
		resp.Pollers = int64(c.Pollers(req.Domain, req.Tasklist, "", 0, s.Clock.Now()).All)
		if req.LimitsInUse {
			used, _ := c.LimitsInUse(req.Domain, 0, s.Clock.Now())
			for i := range used {
				refs = append(refs, used[i].Ref)
			}
		}
	}); err != nil {
		return nil, err
	}
	for _, ref := range req.Limits[:min(len(req.Limits), namedMax)] {
		refs = append(refs, table.Ref(ref))
	}
	if len(refs) == 0 {
		return resp, nil
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
