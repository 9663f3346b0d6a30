package gather

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// limitSum is a limit over all shards.
type limitSum struct {
	*yardv1.LimitUse
	// fullMS is for how long it was full as the shard says that found it so for the longest; known counts the slots of which
	// shards know.
	fullMS int64
	known  int32
}

// Limits joins what the shards tell of limits, and cuts off what was not asked for; nil stands for a shard that is silent.
func Limits(parts []*rpcv1.DescribeShardResponse, req *yardv1.TopLimitsRequest) *yardv1.TopLimitsResponse {
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

// finish says what follows when all shards are counted, and keeps so many holders and waiters. Slots that no shard
// knows of can be counted only if all have answered.
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
