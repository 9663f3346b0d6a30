package shard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
)

// What the core knows of pollers and limits is in the answers whole.
func TestListsOfAShard(t *testing.T) {
	inWorld(t, func(w *world) {
		d, err := w.shard.Describe(w.t.Context(), &rpcv1.DescribeShardRequest{Domain: "d1", Tasklist: "mail"})
		if err != nil || d.Pollers != 7 || d.ListedPollers != nil {
			t.Errorf("%v %v", d, err)
		}
		got, err := w.shard.Describe(w.t.Context(), &rpcv1.DescribeShardRequest{Domain: "d1", Tasklist: "mail", ListPollers: 5, After: "ann"})
		want := &rpcv1.DescribeShardResponse{
			Pollers: 7, More: true, KnownForMs: 60_000,
			ListedPollers: []*yardv1.Poller{{Worker: "ann+", Version: "v1", Types: []string{"a"}, TypesCount: 5, SeenAgoMs: 2000, WaitingPolls: 3}},
		}
		if err != nil || !proto.Equal(got, want) {
			t.Errorf("%v %v, want %v", got, err, want)
		}
		got, err = w.shard.Describe(w.t.Context(), &rpcv1.DescribeShardRequest{Domain: "d1", ListLimits: 11})
		want = &rpcv1.DescribeShardResponse{LeftOut: 12, Top: []*rpcv1.ShardLimit{{
			Slots: 4, FullMs: 60_000,
			Use: &yardv1.LimitUse{
				Ref: "type/a", MaxConcurrency: 3, SlotsInUse: int32(len("type/a")), Running: 2, ReclaimedSlots: 6, FullForMs: 5000, ObservedMs: 3_600_000,
				Holders:          []*yardv1.SlotHolder{{TaskId: ids.TaskID{1}.String(), HeldForMs: 9000}},
				Waiters:          []*yardv1.SlotWaiter{{Tasklist: "d1", Priority: 10, WaitingForMs: 10_000, Tasks: 11}},
				WaitingTasklists: 7, WaitingTasks: 8,
			},
		}}}
		if err != nil || !proto.Equal(got, want) {
			t.Errorf("%v %v, want %v", got, err, want)
		}
		got, err = w.shard.Describe(w.t.Context(), &rpcv1.DescribeShardRequest{
			Domain: "d1", Tasklist: "mail", Explain: &rpcv1.ExplainTask{Type: "a", Group: "acme", Holders: 11},
		})
		said := &rpcv1.DescribeShardResponse{
			Top: []*rpcv1.ShardLimit{want.Top[0].CloneVT()}, Ready: 4, Polled: true, Pollers: 3, Takers: 2, KnownForMs: 60_000,
			LastPoller: &yardv1.Poller{Worker: "aacme+", Version: "v1", Types: []string{"a"}, TypesCount: 1, SeenAgoMs: 2000, WaitingPolls: 3},
		}
		said.Top[0].Closed, said.Top[0].Counting, said.Top[0].NextStartMs = true, true, 250
		if err != nil || !proto.Equal(got, said) {
			t.Errorf("%v %v, want %v", got, err, said)
		}
		w.mu.Lock()
		w.hung[w.Group("d1")] = true
		w.mu.Unlock()
		got, err = w.shard.Describe(w.t.Context(), &rpcv1.DescribeShardRequest{Domain: "d1", ListLimits: 11})
		want.Top[0].Use.SlotsInUse = 4
		if err != nil || !proto.Equal(got, want) {
			t.Errorf("without tables: %v %v, want %v", got, err, want)
		}
	})
}

// I14: the tables are asked for the limits that are wanted, not for all that a domain may have.
func TestI14_DescribeCountsWhatIsWanted(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, c := range []struct {
			req           *rpcv1.DescribeShardRequest
			slots, limits string
		}{
			{&rpcv1.DescribeShardRequest{Limits: []string{"type/pay"}}, "pay", ""},
			{&rpcv1.DescribeShardRequest{Limits: []string{"domain", "limit/partner"}}, "", "domain limit/partner"},
			{&rpcv1.DescribeShardRequest{LimitsInUse: true}, "a", ""},
			{&rpcv1.DescribeShardRequest{LimitsInUse: true, Limits: []string{"domain"}}, "a", "domain"},
		} {
			c.req.Domain, c.req.Tasklist = "d1", "mail"
			d, err := w.shard.Describe(w.t.Context(), c.req)
			slots, limits := slices.Sorted(maps.Keys(d.GetSlots())), slices.Sorted(maps.Keys(d.GetLimits()))
			if err != nil || strings.Join(slots, " ") != c.slots || strings.Join(limits, " ") != c.limits || d.WaitingPolls != 4 {
				t.Errorf("%v: %v %v", c.req, d, err)
			}
		}
		many := &rpcv1.DescribeShardRequest{Domain: "d1"}
		for i := range 5000 {
			many.Limits = append(many.Limits, fmt.Sprint("limit/l", i))
		}
		if d, err := w.shard.Describe(w.t.Context(), many); err != nil || len(d.Limits) != namedMax {
			t.Errorf("%d of 5000 limits were counted: %v", len(d.GetLimits()), err)
		}
	})
}

// Moves implements Outbox.
func (w *world) Moves(all []tree.Move) { w.note("moves %d", len(all)) }

// Branches implements Outbox.
func (w *world) Branches(all []tree.Branch) {
	if len(all) > 0 {
		w.note("branches %d", len(all))
	}
}

// Loads implements Outbox.
func (w *world) Loads(all []tree.Load) {
	if len(all) > 0 {
		w.note("loads %d", len(all))
	}
}

func TestDescribe(t *testing.T) {
	inWorld(t, func(w *world) {
		d, err := w.shard.Describe(w.t.Context(), &rpcv1.DescribeShardRequest{Domain: "d1", Tasklist: "mail", Limits: []string{"type/pay", "domain"}})
		if err != nil || d.Ready != 2 || d.WaitingPolls != 4 || d.Slots["pay"] != int32(len("type/pay")) || d.Limits["domain"] != int32(len("domain")) {
			t.Fatalf("%v %v", d, err)
		}
		if p := d.Partitions; len(p) != 2 || p[0].Partition != 3 || p[0].Ready != 1 || p[0].WaitingPolls != 4 || p[1].Partition != 7 || p[1].Ready != 1 {
			t.Errorf("its partitions are %v", p)
		}
	})
}
