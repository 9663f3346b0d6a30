package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

func (r *rig) top(req *yardv1.TopLimitsRequest) (*yardv1.TopLimitsResponse, error) {
	got, err := asked(r, "shop", true, r.TopLimits, req)
	resp, _ := got.(*yardv1.TopLimitsResponse)
	return resp, err
}

// inUse is what a shard says of a limit.
func inUse(slots int32, fullMS int64, u *yardv1.LimitUse) *rpcv1.ShardLimit {
	return &rpcv1.ShardLimit{Use: u, Slots: slots, FullMs: fullMS}
}

// What shards tell is added up; what each tells of all is not; and the holders are looked up in history.
func TestTopJoinsWhatShardsTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := ids.NewTaskID(time.Now(), 0, 1).String(), ids.NewTaskID(time.Now(), 1, 2).String()
		tells := slotsOf(
			&rpcv1.DescribeShardResponse{Top: []*rpcv1.ShardLimit{
				inUse(3, 1_800_000, &yardv1.LimitUse{
					Ref: "type/pay", MaxConcurrency: 5, SlotsInUse: 7, Running: 2, ReclaimedSlots: 1, FullForMs: 10, ObservedMs: 3_600_000,
					WaitingTasklists: 2, WaitingTasks: 9,
					Holders: []*yardv1.SlotHolder{{TaskId: first, HeldForMs: 50}},
					Waiters: []*yardv1.SlotWaiter{{Tasklist: "a", WaitingForMs: 20}, {Tasklist: "b", WaitingForMs: 10}},
				}),
				inUse(1, 0, &yardv1.LimitUse{Ref: "domain", MaxConcurrency: 9, SlotsInUse: 1, Running: 1, FullForMs: 5, ObservedMs: 1000}),
			}},
			&rpcv1.DescribeShardResponse{Top: []*rpcv1.ShardLimit{
				inUse(1, 900_000, &yardv1.LimitUse{
					Ref: "type/pay", MaxConcurrency: 4, SlotsInUse: 6, Running: 2, ReclaimedSlots: 2, FullForMs: 30, ObservedMs: 1_000_000,
					WaitingTasklists: 1, WaitingTasks: 1,
					Holders: []*yardv1.SlotHolder{{TaskId: second, HeldForMs: 60}, {TaskId: "unknown", HeldForMs: 1}},
					Waiters: []*yardv1.SlotWaiter{{Tasklist: "c", WaitingForMs: 30}},
				}),
			}},
		)
		r := newRig(t, tells, func(d *Deps) {
			d.Owners.HistoryGet = func(_ context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				if id := ids.TaskID(req.TaskId); id.String() != second || p != 1 || req.Domain != "shop" {
					return nil, fault.New(fault.Unavailable, "away")
				}
				return &rpcv1.GetTaskResponse{Task: &yardv1.Task{Type: "pay", Tasklist: "c", Worker: "ann", State: yardv1.TaskState_TASK_STATE_RUNNING}}, nil
			}
		})
		got, err := r.top(&yardv1.TopLimitsRequest{Each: 2})
		want := &yardv1.TopLimitsResponse{Limits: []*yardv1.LimitUse{
			{
				Ref: "type/pay", MaxConcurrency: 5, SlotsInUse: 7, Running: 4, UnexplainedSlots: 2, ReclaimedSlots: 3,
				FullForMs: 30, SaturationPercent: 50, ObservedMs: 3_600_000,
				Holders: []*yardv1.SlotHolder{
					{TaskId: second, HeldForMs: 60, Type: "pay", Tasklist: "c", Worker: "ann", State: yardv1.TaskState_TASK_STATE_RUNNING},
					{TaskId: first, HeldForMs: 50},
				},
				Waiters:          []*yardv1.SlotWaiter{{Tasklist: "c", WaitingForMs: 30}, {Tasklist: "a", WaitingForMs: 20}},
				WaitingTasklists: 3, WaitingTasks: 10,
				Shards: []*yardv1.ShardSlots{{Running: 2, Slots: 3}, {Shard: 1, Running: 2, Slots: 1}},
			},
			{Ref: "domain", MaxConcurrency: 9, SlotsInUse: 1, Running: 1, ObservedMs: 1000, Shards: []*yardv1.ShardSlots{{Running: 1, Slots: 1}}},
		}}
		if err != nil || !proto.Equal(got, want) {
			t.Errorf("got %v %v, want %v", got, err, want)
		}
		if got, err := r.top(&yardv1.TopLimitsRequest{Limit: 1}); err != nil || len(got.Limits) != 1 || got.Others != 1 || len(got.Limits[0].Holders) != 3 {
			t.Errorf("got %v %v", got, err)
		}
	})
}

// A tasklist whose partitions wait at several shards is one waiter.
func TestTopJoinsPartitionsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := func(others int32, all ...*yardv1.SlotWaiter) *rpcv1.DescribeShardResponse {
			return &rpcv1.DescribeShardResponse{Top: []*rpcv1.ShardLimit{inUse(1, 0, &yardv1.LimitUse{
				Ref: "domain", Running: 1, WaitingTasklists: int32(len(all)) + others, Waiters: all,
			})}}
		}
		r := newRig(t, slotsOf(
			waits(2, &yardv1.SlotWaiter{Tasklist: "b", Priority: 3, WaitingForMs: 20, Tasks: 5}, &yardv1.SlotWaiter{Tasklist: "a", Priority: 2, WaitingForMs: 15, Tasks: 1}),
			waits(0, &yardv1.SlotWaiter{Tasklist: "b", Priority: 1, WaitingForMs: 10, Tasks: 7}),
		))
		got, err := r.top(&yardv1.TopLimitsRequest{})
		testkit.NoError(t, err)
		want := &yardv1.LimitUse{WaitingTasklists: 4, Waiters: []*yardv1.SlotWaiter{
			{Tasklist: "b", Priority: 1, WaitingForMs: 20, Tasks: 12}, {Tasklist: "a", Priority: 2, WaitingForMs: 15, Tasks: 1},
		}}
		if u := got.Limits[0]; !proto.Equal(&yardv1.LimitUse{WaitingTasklists: u.WaitingTasklists, Waiters: u.Waiters}, want) {
			t.Errorf("got %v", u)
		}
	})
}

// The most saturated come first, or those for which the most tasks wait.
func TestTopIsSorted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		use := func(ref string, percent, waiting int64) *rpcv1.ShardLimit {
			return inUse(1, percent*10, &yardv1.LimitUse{Ref: ref, Running: 1, ObservedMs: 1000, WaitingTasks: waiting})
		}
		r := newRig(t, slotsOf(
			&rpcv1.DescribeShardResponse{Top: []*rpcv1.ShardLimit{use("b", 50, 1), use("a", 50, 1), use("c", 100, 0)}},
			&rpcv1.DescribeShardResponse{Top: []*rpcv1.ShardLimit{use("d", 0, 2)}},
		))
		for byWaiting, want := range map[bool]string{false: "c a b d", true: "d a b c"} {
			got, err := r.top(&yardv1.TopLimitsRequest{ByWaiting: byWaiting})
			var refs []string
			for _, l := range got.GetLimits() {
				refs = append(refs, l.Ref)
			}
			if err != nil || strings.Join(refs, " ") != want {
				t.Errorf("by waiting %v: %v %v", byWaiting, refs, err)
			}
		}
	})
}

// A shard that is silent is named and not waited for; what no shard knows of cannot be said then. If all are, nothing can.
func TestTopNamesSilentShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := map[int]bool{1: true}
		r := newRig(t, func(d *Deps) {
			d.Owners.MatchingDescribe = func(ctx context.Context, m int, _ *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
				if silent[m] {
					<-ctx.Done()
					return nil, fault.New(fault.Unavailable, "no answer")
				}
				return &rpcv1.DescribeShardResponse{Top: []*rpcv1.ShardLimit{inUse(1, 0, &yardv1.LimitUse{Ref: "domain", SlotsInUse: 5, Running: 1})}}, nil
			}
		})
		began := time.Now()
		got, err := r.top(&yardv1.TopLimitsRequest{})
		if err != nil || len(got.SilentShards) != 1 || got.SilentShards[0] != 1 || got.Limits[0].Running != 1 || got.Limits[0].UnexplainedSlots != 0 || time.Since(began) > topWait {
			t.Errorf("got %v %v after %v", got, err, time.Since(began))
		}
		silent[1] = false
		if got, err := r.top(&yardv1.TopLimitsRequest{}); err != nil || got.Limits[0].UnexplainedSlots != 3 {
			t.Errorf("got %v %v", got, err)
		}
		silent = map[int]bool{0: true, 1: true}
		if _, err := r.top(&yardv1.TopLimitsRequest{}); fault.CodeOf(err) != fault.Unavailable || fault.From(err).RetryAfter == 0 {
			t.Errorf("got %v", err)
		}
	})
}

// However long names are, an answer fits, and says how many limits it left out.
func TestTopFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("\x01", validate.WorkerBytesMax) // six bytes each in JSON
		d := &rpcv1.DescribeShardResponse{}
		for i := range 100 {
			u := &yardv1.LimitUse{Ref: fmt.Sprint("type/", i), Running: 1}
			for j := range 10 {
				u.Holders = append(u.Holders, &yardv1.SlotHolder{TaskId: ids.NewTaskID(time.Now(), 0, uint64(j)).String()})
				u.Waiters = append(u.Waiters, &yardv1.SlotWaiter{Tasklist: fmt.Sprint(long, j)})
			}
			d.Top = append(d.Top, inUse(1, 0, u))
		}
		var lookUps atomic.Int64
		r := newRig(t, slotsOf(d, &rpcv1.DescribeShardResponse{}), func(d *Deps) {
			d.Owners.HistoryGet = func(_ context.Context, _ int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				if !req.Brief {
					t.Error("the payloads of holders are asked for")
				}
				lookUps.Add(1)
				return &rpcv1.GetTaskResponse{Task: &yardv1.Task{Worker: long}}, nil
			}
		})
		got, err := r.top(&yardv1.TopLimitsRequest{Limit: 100, Each: 10})
		if err != nil || len(got.Limits) == 0 || int(got.Others) != 100-len(got.Limits) || got.Others == 0 || lookUps.Load() != 10 {
			t.Fatalf("%d limits, %d others, %d looked up: %v", len(got.GetLimits()), got.GetOthers(), lookUps.Load(), err)
		}
		fits(t, true, got)
	})
}

// The pollers of a tasklist are those that the owner of its polls knows, page by page.
func TestPollersComeFromTheShardOfTheirPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asks []*rpcv1.DescribeShardRequest
		var all []*yardv1.Poller
		for i := range 900 {
			all = append(all, &yardv1.Poller{Worker: fmt.Sprintf("%0128d", i), Types: []string{strings.Repeat("x", 800)}})
		}
		r := newRig(t, func(d *Deps) {
			d.Owners.MatchingDescribe = func(_ context.Context, m int, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
				if m != ids.MatchingShard("shop", "main", 0, rigShards) {
					return nil, fault.New(fault.Internal, "shard %d was asked", m)
				}
				asks = append(asks, req)
				from := 0
				for from < len(all) && all[from].Worker <= req.After {
					from++
				}
				to := min(from+500, len(all))
				return &rpcv1.DescribeShardResponse{ListedPollers: all[from:to], More: to < len(all), KnownForMs: 7}, nil
			}
		})
		n, cursor := 0, ""
		for pages := 1; ; pages++ {
			resp := answerOf[*yardv1.TasklistPollersResponse](t, r, "shop", true, r.TasklistPollers, &yardv1.TasklistPollersRequest{Tasklist: "main", Cursor: cursor})
			fits(t, true, resp)
			for _, p := range resp.Pollers {
				testkit.MustEqual(t, fmt.Sprintf("poller %d is", n), p.Worker, all[n].Worker)
				n++
			}
			if cursor = resp.NextCursor; cursor == "" {
				if n != len(all) || pages < 3 || resp.KnownForMs != 7 {
					t.Errorf("%d on %d pages", n, pages)
				}
				break
			}
		}
		if want := (&rpcv1.DescribeShardRequest{Domain: "shop", Tasklist: "main", ListPollers: validate.ListMax}); !proto.Equal(asks[0], want) {
			t.Errorf("asked %v", asks[0])
		}
	})
}

// I14: one answer looks up so many holders, and none that names a partition which does not exist.
func TestI14_TopLooksUpSoMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &rpcv1.DescribeShardResponse{}
		for i := range 100 {
			u := &yardv1.LimitUse{Ref: fmt.Sprint("type/", i), Running: 1}
			for j := range 3 {
				u.Holders = append(u.Holders, &yardv1.SlotHolder{TaskId: ids.NewTaskID(time.Now(), j%2*rigPartitions, uint64(3*i+j)).String(), HeldForMs: int64(j)})
			}
			d.Top = append(d.Top, inUse(1, 0, u))
		}
		var lookUps atomic.Int64
		r := newRig(t, slotsOf(d, &rpcv1.DescribeShardResponse{}), func(d *Deps) {
			d.Owners.HistoryGet = func(_ context.Context, p int, _ *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				if p >= rigPartitions {
					t.Errorf("partition %d was asked", p)
				}
				lookUps.Add(1)
				return &rpcv1.GetTaskResponse{}, nil
			}
		})
		if _, err := r.top(&yardv1.TopLimitsRequest{Limit: 100, Each: 10}); err != nil || lookUps.Load() == 0 || lookUps.Load() > topTasksMax {
			t.Errorf("%d were looked up: %v", lookUps.Load(), err)
		}
	})
}
