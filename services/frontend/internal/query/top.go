package query

import (
	"context"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

const (
	// topWait is for how long the shards, and then the holders' tasks, are waited for.
	topWait = time.Second
	// topTasksMax is how many holders are looked up for one answer, topTasksAtOnce how many at the same time.
	topTasksMax, topTasksAtOnce = 100, 4
)

// TopLimits tells which limits are full, who holds their slots and who waits (limits.top). Shards that do not answer
// are named: who asks this may do so because something is down.
func (q *Queries) TopLimits(c call.Call, req *yardv1.TopLimitsRequest, answer call.Answer) {
	q.Run.Ask(c, validate.TopLimits(req), answer, func(ctx context.Context) (codec.Message, error) {
		parts, err := q.limitsInUse(ctx, c.Domain, req.Each)
		if err != nil {
			return nil, err
		}
		resp := gather.Limits(parts, req)
		q.lookUpHolders(ctx, c.Domain, resp.Limits)
		page, _ := call.Fit(c, resp.Limits, len(resp.Limits))
		resp.Others += int32(len(resp.Limits) - len(page))
		resp.Limits = page
		return resp, nil
	})
}

// limitsInUse asks all shards; nil stands for one that is silent. It fails if all are.
func (q *Queries) limitsInUse(ctx context.Context, domain string, each int32) ([]*rpcv1.DescribeShardResponse, error) {
	parts, errs := owners.Some(ctx, q.Partitioning.Matching, topWait, func(ctx context.Context, m int) (*rpcv1.DescribeShardResponse, error) {
		return q.Tasks.MatchingDescribe(ctx, m, &rpcv1.DescribeShardRequest{Domain: domain, ListLimits: each})
	})
	if !slices.Contains(errs, nil) {
		return nil, fault.From(errs[0]).After(call.AwayRetryAfter)
	}
	return parts, nil
}

// lookUpHolders asks history what the holders are. One that is not found in time stays without.
func (q *Queries) lookUpHolders(ctx context.Context, domain string, limits []*yardv1.LimitUse) {
	ctx, cancel := context.WithTimeout(ctx, topWait)
	defer cancel()
	byTask := map[string][]*yardv1.SlotHolder{}
	var order []string
	for _, l := range limits {
		for _, h := range l.Holders {
			if byTask[h.TaskId] == nil {
				order = append(order, h.TaskId)
			}
			byTask[h.TaskId] = append(byTask[h.TaskId], h)
		}
	}
	order = order[:min(len(order), topTasksMax)]
	_ = parallel.Each(ctx, len(order), topTasksAtOnce, func(ctx context.Context, i int) error {
		id, err := ids.ParseTaskID(order[i])
		if err != nil || id.Partition() >= q.Partitioning.History {
			return nil
		}
		resp, err := q.Tasks.HistoryGet(ctx, id.Partition(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: domain, Brief: true})
		if err != nil || resp.Task == nil {
			return nil
		}
		for _, h := range byTask[order[i]] {
			h.Type, h.Tasklist, h.Worker, h.State = resp.Task.Type, resp.Task.Tasklist, resp.Task.Worker, resp.Task.State
		}
		return nil
	})
}
