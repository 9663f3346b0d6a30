package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/paging"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

const (
	// topWait is for how long the shards, and then the holders' tasks, are waited for.
	topWait = time.Second
	// topTasksMax is how many holders are looked up for one answer, topTasksAtOnce how many at the same time: an owner of before
	// tells of a task with half a megabyte.
	topTasksMax, topTasksAtOnce = 100, 4
)

// TopLimits tells which limits are full, who holds their slots and who waits (limits.top). Shards that do not answer
// are named: who asks this may do so because something is down.
func (g *Gateway) TopLimits(c Call, req *yardv1.TopLimitsRequest, answer Answer) {
	if rejects(g, &c, req, validate.TopLimits, answer) {
		return
	}
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		parts, err := g.limitsInUse(ctx, c.Domain, req.Each)
		if err != nil {
			return nil, err
		}
		resp := top(parts, req)
		g.lookUpHolders(ctx, c.Domain, resp.Limits)
		page, _ := paging.Cut(resp.Limits, len(resp.Limits), paging.BytesMax, func(u *yardv1.LimitUse) int { return c.size(u) })
		resp.Others += int32(len(resp.Limits) - len(page))
		resp.Limits = page
		return resp, nil
	})
}

// limitsInUse asks all shards; nil stands for one that is silent. It fails if all are.
func (g *Gateway) limitsInUse(ctx context.Context, domain string, each int32) ([]*rpcv1.DescribeShardResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, topWait)
	defer cancel()
	n := g.Partitioning.Matching
	parts, errs := make([]*rpcv1.DescribeShardResponse, n), make([]error, n)
	_ = parallel.Each(ctx, n, n, func(ctx context.Context, m int) error {
		d, err := g.lists(ctx, m, &rpcv1.DescribeShardRequest{Domain: domain, ListLimits: each})
		if errs[m] = err; err == nil {
			parts[m] = d
		}
		return nil
	})
	silent := 0
	for _, err := range errs {
		if fault.CodeOf(err) == fault.FailedPrecondition {
			return nil, err
		}
		if err != nil {
			silent++
		}
	}
	if silent == n {
		return nil, fault.From(errs[0]).After(awayRetryAfter)
	}
	return parts, nil
}

// limitSum is a limit over all shards.
type limitSum struct {
	*yardv1.LimitUse
	// fullMS is for how long it was full as the shard says that found it so for the longest; known counts the slots of which
	// shards know.
	fullMS int64
	known  int32
}

// top joins what the shards tell, and cuts off what was not asked for.
func top(parts []*rpcv1.DescribeShardResponse, req *yardv1.TopLimitsRequest) *yardv1.TopLimitsResponse {
	resp := &yardv1.TopLimitsResponse{}
	complete := true
	byRef := map[string]*limitSum{}
	var sums []*limitSum
	for m, d := range parts {
		if d == nil {
			resp.SilentShards = append(resp.SilentShards, int32(m))
		}
		complete = complete && d != nil && d.LeftOut == 0
		for _, l := range d.GetTop() {
			if l.Use == nil {
				continue
			}
			sum := byRef[l.Use.Ref]
			if sum == nil {
				sum = &limitSum{LimitUse: &yardv1.LimitUse{Ref: l.Use.Ref}}
				byRef[l.Use.Ref] = sum
				sums = append(sums, sum)
			}
			sum.add(int32(m), l)
		}
	}
	for _, sum := range sums {
		sum.finish(int(req.Each), complete)
	}
	slices.SortFunc(sums, func(a, b *limitSum) int { return a.compare(b, req.ByWaiting) })
	for _, sum := range sums[:min(len(sums), int(req.Limit))] {
		resp.Limits = append(resp.Limits, sum.LimitUse)
	}
	resp.Others = int32(len(sums) - len(resp.Limits))
	return resp
}

// add counts what a shard uses.
func (s *limitSum) add(m int32, l *rpcv1.ShardLimit) {
	u := l.Use
	s.MaxConcurrency = max(s.MaxConcurrency, u.MaxConcurrency) // a shard may lag
	s.SlotsInUse = max(s.SlotsInUse, u.SlotsInUse)             // each tells of all shards
	s.Running += u.Running
	s.known += max(u.Running, l.Slots)
	s.ReclaimedSlots += u.ReclaimedSlots
	s.Shadow = s.Shadow || u.Shadow
	s.WouldWait += u.WouldWait
	s.Rejected += u.Rejected
	s.Displaced += u.Displaced
	s.FullForMs = max(s.FullForMs, u.FullForMs)
	if l.FullMs > s.fullMS || l.FullMs == s.fullMS && u.ObservedMs > s.ObservedMs {
		s.fullMS, s.ObservedMs = l.FullMs, u.ObservedMs
	}
	s.Holders = append(s.Holders, u.Holders...)
	s.Waiters = append(s.Waiters, u.Waiters...)
	s.WaitingTasklists += u.WaitingTasklists
	s.WaitingTasks += u.WaitingTasks
	if u.Running+l.Slots > 0 {
		s.Shards = append(s.Shards, &yardv1.ShardSlots{Shard: m, Running: u.Running, Slots: l.Slots})
	}
}

// finish says what follows when all shards are counted, and keeps so many holders and waiters. What slots no shard
// knows of can be said only if all have answered.
func (s *limitSum) finish(each int, complete bool) {
	if complete {
		s.UnexplainedSlots = max(0, s.SlotsInUse-s.known)
	}
	if s.SlotsInUse < s.MaxConcurrency && s.WaitingTasklists == 0 { // a shard that needs no slot hears of it late
		s.FullForMs = 0
	}
	s.SaturationPercent = int32((100*s.fullMS + s.ObservedMs/2) / max(s.ObservedMs, 1))
	slices.SortFunc(s.Holders, func(a, b *yardv1.SlotHolder) int {
		return cmp.Or(cmp.Compare(b.HeldForMs, a.HeldForMs), strings.Compare(a.TaskId, b.TaskId))
	})
	s.joinWaiters()
	slices.SortFunc(s.Waiters, func(a, b *yardv1.SlotWaiter) int {
		return cmp.Or(cmp.Compare(b.WaitingForMs, a.WaitingForMs), strings.Compare(a.Tasklist, b.Tasklist))
	})
	s.Holders, s.Waiters = s.Holders[:min(len(s.Holders), each)], s.Waiters[:min(len(s.Waiters), each)]
}

// joinWaiters makes one of those that are the same tasklist: several shards have partitions of it.
func (s *limitSum) joinWaiters() {
	slices.SortFunc(s.Waiters, func(a, b *yardv1.SlotWaiter) int { return strings.Compare(a.Tasklist, b.Tasklist) })
	var all []*yardv1.SlotWaiter
	for _, w := range s.Waiters {
		if len(all) == 0 || all[len(all)-1].Tasklist != w.Tasklist {
			all = append(all, w)
			continue
		}
		same := all[len(all)-1]
		same.Priority, same.WaitingForMs, same.Tasks = min(same.Priority, w.Priority), max(same.WaitingForMs, w.WaitingForMs), same.Tasks+w.Tasks
		s.WaitingTasklists--
	}
	s.Waiters = all
}

// compare is the order of an answer.
func (s *limitSum) compare(o *limitSum, byWaiting bool) int {
	waiting := cmp.Or(cmp.Compare(o.WaitingTasks, s.WaitingTasks), cmp.Compare(o.WaitingTasklists, s.WaitingTasklists))
	saturated := cmp.Compare(o.SaturationPercent, s.SaturationPercent)
	if byWaiting {
		return cmp.Or(waiting, saturated, cmp.Compare(o.Running, s.Running), strings.Compare(s.Ref, o.Ref))
	}
	return cmp.Or(saturated, waiting, cmp.Compare(o.Running, s.Running), strings.Compare(s.Ref, o.Ref))
}

// lookUpHolders asks history what the holders are. One that is not found in time stays without.
func (g *Gateway) lookUpHolders(ctx context.Context, domain string, limits []*yardv1.LimitUse) {
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
		if err != nil || id.Partition() >= g.Partitioning.History {
			return nil
		}
		resp, err := g.Owners.HistoryGet(ctx, id.Partition(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: domain, Brief: true})
		if err != nil || resp.Task == nil {
			return nil
		}
		for _, h := range byTask[order[i]] {
			h.Type, h.Tasklist, h.Worker, h.State = resp.Task.Type, resp.Task.Tasklist, resp.Task.Worker, resp.Task.State
		}
		return nil
	})
}
