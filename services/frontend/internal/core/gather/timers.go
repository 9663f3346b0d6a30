package gather

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/duelist"
)

const (
	minuteMS = int64(time.Minute / time.Millisecond)
	// timerCountsMax is how many tasklists and types an answer of timers.count has.
	timerCountsMax = 100
)

// Timers adds up the tasks that wait for their time, in spans of so many minutes.
func Timers(parts []*rpcv1.CountAheadResponse, req *yardv1.CountTimersRequest, span int64) *yardv1.CountTimersResponse {
	resp, kinds := &yardv1.CountTimersResponse{}, map[[2]string]int64{}
	for _, p := range parts {
		later := p.Waiting
		for _, s := range p.Spans {
			later -= s.Tasks
		}
		resp.Later += max(0, later) // some may have fired while the partition counted
		for _, k := range p.Counts {
			kinds[[2]string{k.Tasklist, k.Type}] += k.Tasks
		}
	}
	for _, s := range Minutes(parts) {
		resp.Tasks += s.Tasks
		resp.Spans = append(resp.Spans, &yardv1.TimerSpan{StartMs: s.Minute * minuteMS, EndMs: (s.Minute + span) * minuteMS, Tasks: s.Tasks})
	}
	if req.Type != "" {
		resp.Later = 0
	}
	resp.Counts = largest(kinds)
	return resp
}

// Minutes adds up the spans of all partitions, in order.
func Minutes(parts []*rpcv1.CountAheadResponse) (all []duelist.Minute) {
	sums := map[int64]int64{}
	for _, p := range parts {
		for _, s := range p.Spans {
			sums[s.Minute] += s.Tasks
		}
	}
	for _, minute := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, duelist.Minute{Minute: minute, Tasks: sums[minute]})
	}
	return all
}

// largest are the tasklists and types with the most tasks.
func largest(kinds map[[2]string]int64) (all []*yardv1.TimerCount) {
	for k, n := range kinds {
		all = append(all, &yardv1.TimerCount{Tasklist: k[0], Type: k[1], Tasks: n})
	}
	slices.SortFunc(all, func(a, b *yardv1.TimerCount) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), strings.Compare(a.Tasklist, b.Tasklist), strings.Compare(a.Type, b.Type))
	})
	return all[:min(len(all), timerCountsMax)]
}
