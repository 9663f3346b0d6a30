package shard

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// eachMax bounds the holders and the waiters of one limit.
	eachMax = 10
	// slotsWait is how long the tables are waited for: who asks about limits may do so since they are away.
	slotsWait = 300 * time.Millisecond
)

// listPollers tells who polled a tasklist.
func (s *Shard) listPollers(ctx context.Context, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
	var seen report.Page
	if err := s.look(ctx, req.Domain, func(c Core) {
		seen = c.Pollers(req.Domain, req.Tasklist, req.After, int(req.ListPollers), s.Clock.Now())
	}); err != nil {
		return nil, err
	}
	resp := &rpcv1.DescribeShardResponse{Pollers: int64(seen.All), More: seen.More, KnownForMs: seen.Known.Milliseconds()}
	for i := range seen.Seen {
		resp.ListedPollers = append(resp.ListedPollers, pollerOf(&seen.Seen[i]))
	}
	return resp, nil
}

func pollerOf(p *report.Seen) *yardv1.Poller {
	return &yardv1.Poller{
		Worker: p.Worker, Version: p.Version, Types: p.Types, TypesCount: int32(p.TypesN),
		SeenAgoMs: p.Ago.Milliseconds(), WaitingPolls: int32(p.Waiting),
	}
}

// explain tells what keeps tasks of a kind waiting here.
func (s *Shard) explain(ctx context.Context, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
	var e match.Explained
	k := match.Kind{Domain: req.Domain, Tasklist: req.Tasklist, Type: req.Explain.Type, Group: req.Explain.Group}
	if err := s.look(ctx, req.Domain, func(c Core) { e = c.Explain(k, min(int(req.Explain.Holders), eachMax), s.Clock.Now()) }); err != nil {
		return nil, err
	}
	resp := &rpcv1.DescribeShardResponse{
		Top: s.withSlots(ctx, req.Domain, e.Limits), Ready: int64(e.Triggers), Polled: e.Polled,
		Pollers: int64(e.Workers.All), Takers: int64(e.Workers.Takers), KnownForMs: e.Workers.Known.Milliseconds(),
	}
	if e.Workers.Last != nil {
		resp.LastPoller = pollerOf(e.Workers.Last)
	}
	return resp, nil
}

// listLimits tells who uses the limits of a domain here. The tables are asked for their counts afterwards, so it may be
// some milliseconds newer; where they do not answer, what they last counted for this shard stands for it.
func (s *Shard) listLimits(ctx context.Context, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
	var all []limit.InUse
	resp := &rpcv1.DescribeShardResponse{}
	if err := s.look(ctx, req.Domain, func(c Core) {
		now := s.Clock.Now()
		used, leftOut := c.LimitsInUse(req.Domain, min(int(req.ListLimits), eachMax), now)
		all, resp.LeftOut = used, int32(leftOut)
	}); err != nil {
		return nil, err
	}
	resp.Top = s.withSlots(ctx, req.Domain, all)
	return resp, nil
}

// fullLimits tells for which limits of all domains tasklists wait here. The tables are not asked.
func (s *Shard) fullLimits(ctx context.Context, req *yardv1.TopDomainsRequest) (*rpcv1.DescribeShardResponse, error) {
	var all []match.FullLimit
	if err := s.look(ctx, "", func(c Core) { all = c.FullLimits(int(req.Limit), s.Clock.Now()) }); err != nil {
		return nil, err
	}
	top := &yardv1.TopDomainsResponse{}
	for _, l := range all {
		top.FullLimits = append(top.FullLimits, &yardv1.FullLimit{
			Domain: l.Domain, Ref: string(l.Ref), MaxConcurrency: int32(l.Max), Running: int32(l.Running),
			FullForMs: atLeastOne(l.FullFor), WaitingTasklists: int32(l.Lists),
		})
	}
	return &rpcv1.DescribeShardResponse{Domains: top}, nil
}

// withSlots are limits with the slots that the tables count now.
func (s *Shard) withSlots(ctx context.Context, domain string, all []limit.InUse) (top []*rpcv1.ShardLimit) {
	if len(all) == 0 {
		return nil
	}
	refs := make([]table.Ref, len(all))
	for i := range all {
		refs[i] = all[i].Ref
	}
	ctx, cancel := context.WithTimeout(ctx, slotsWait)
	defer cancel()
	counts, err := s.Tables.Slots(ctx, domain, refs)
	for i := range all {
		slots := all[i].Entry
		if _, _, group := all[i].Ref.Group(); group { // as they said last: they may be very many
			slots = all[i].Used
		} else if err == nil {
			slots = counts[i]
		}
		top = append(top, limitOf(&all[i], slots))
	}
	return top
}

func limitOf(u *limit.InUse, slots int) *rpcv1.ShardLimit {
	use := &yardv1.LimitUse{
		Ref: string(u.Ref), MaxConcurrency: int32(u.Max), SlotsInUse: int32(slots), Running: int32(u.Running), ReclaimedSlots: u.Reclaimed,
		Shadow: u.Shadow, WouldWait: u.WouldWait, Rejected: u.Rejected, Displaced: u.Displaced,
		FullForMs: atLeastOne(u.FullFor), ObservedMs: u.Observed.Milliseconds(),
		WaitingTasklists: int32(u.Lists), WaitingTasks: int64(u.Tasks),
	}
	for _, h := range u.Holders {
		use.Holders = append(use.Holders, &yardv1.SlotHolder{TaskId: h.ID.String(), HeldForMs: h.For.Milliseconds()})
	}
	for _, w := range u.Waiters {
		use.Waiters = append(use.Waiters, &yardv1.SlotWaiter{
			Tasklist: w.Tasklist, Priority: int32(w.Priority), WaitingForMs: w.For.Milliseconds(), Tasks: int64(w.Tasks),
		})
	}
	return &rpcv1.ShardLimit{
		Use: use, Slots: int32(u.Entry), FullMs: u.Full.Milliseconds(), Closed: u.Closed, Counting: u.Counting, NextStartMs: atLeastOne(u.Next),
	}
}

// atLeastOne is a time in ms that is not 0 if it is more than none.
func atLeastOne(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return max(1, d.Milliseconds())
}
