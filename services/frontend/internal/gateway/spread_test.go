package gateway

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/balance"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// putPartitions spreads a tasklist of the rig's domain over so many partitions.
func (r *rig) putPartitions(name string, n int32) error {
	_, err := asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: name, Partitions: n}})
	return err
}

// shardOf is the shard of a partition of the rig's tasklist.
func shardOf(partition int) int { return ids.MatchingShard("shop", "main", partition, rigShards) }

// tellLoad tells the gateway what waits in the partitions of tasklist main.
func (r *rig) tellLoad(t *testing.T, triggers ...int64) {
	t.Helper()
	load := &rpcv1.TasklistLoad{}
	for p, n := range triggers {
		load.Partitions = append(load.Partitions, &rpcv1.PartitionLoad{Domain: "shop", Tasklist: "main", TasklistPartition: int32(p), Triggers: n})
	}
	r.TakeTasklistLoad(testkit.Encoded(t, load))
}

// spreadOf polls so often, and returns the partitions that the polls went to.
func (r *rig) spreadOf(t *testing.T, polls int) []int32 {
	t.Helper()
	before := len(r.bus.sentPolls())
	var got []int32
	for range polls {
		<-r.poll(time.Minute)
	}
	for _, s := range r.bus.sentPolls()[before:] {
		if got = append(got, s.poll.TasklistPartition); s.shard != shardOf(int(s.poll.TasklistPartition)) || s.poll.Moved {
			t.Errorf("a poll of partition %d went to shard %d, moved: %v", s.poll.TasklistPartition, s.shard, s.poll.Moved)
		}
	}
	return got
}

// Polls go to the partitions in turn, or to where the backlog is, as far as the settings say; who changes them needs no restart.
func TestPollsAreSpreadOverPartitions(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		r.tellLoad(t, 0, 500, 0) // of one partition nothing is kept
		testkit.Equal(t, "one partition", r.spreadOf(t, 2), []int32{0, 0})
		wantCode(t, r.putPartitions("main", 3), "")
		testkit.Equal(t, "in turn", r.spreadOf(t, 4), []int32{0, 1, 2, 0})
		r.tellLoad(t, 0, 500, 0, 800)
		testkit.Equal(t, "by backlog", r.spreadOf(t, 3), []int32{1, 1, 1})
		r.TakeTasklistLoad([]byte("no message"))
		time.Sleep(balance.ReportedFor + 1)
		testkit.Equal(t, "reports are old", r.spreadOf(t, 3), []int32{1, 2, 0})
		wantCode(t, r.putPartitions("main", 1), "")
		testkit.Equal(t, "one partition again", r.spreadOf(t, 2), []int32{0, 0})
	})
}

// Whose turn it is is forgotten with a tasklist that no one polls.
func TestUnusedTasklistsAreForgotten(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		wantCode(t, r.putPartitions("main", 3), "")
		for _, c := range []struct {
			after time.Duration
			want  int32
		}{{0, 0}, {balance.KeptFor - time.Second, 1}, {2 * balance.KeptFor, 0}} {
			time.Sleep(c.after)
			if got := r.spreadOf(t, 1); got[0] != c.want {
				t.Errorf("after %v: partition %d", c.after, got[0])
			}
		}
	})
}

// The setting says how.
func TestTheBalancerIsASetting(t *testing.T) {
	for strategy, want := range map[balance.Strategy][]int32{balance.Weighted: {1, 1, 1}, balance.RoundRobin: {0, 1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(d *Deps) { d.Config.PollBalancer = strategy })
			wantCode(t, r.putPartitions("main", 2), "")
			r.tellLoad(t, 0, 500)
			testkit.Equal(t, string(strategy), r.spreadOf(t, 3), want)
		})
	}
	c := DefaultConfig()
	c.PollBalancer = "best"
	if problems := c.Validate(); len(problems) != 1 || problems[0].Path != "poll_balancer" {
		t.Errorf("got %v", problems)
	}
	if problems := DefaultConfig().Validate(); len(problems) != 0 || DefaultConfig().PollBalancer != balance.Weighted {
		t.Errorf("the default: %v", problems)
	}
}

// Whatever a stored tasklist says, a poll goes to a partition that there may be.
func TestOddPartitionsAreCut(t *testing.T) {
	r := newRig(t)
	for stored, want := range map[int32]int{-5: 1, 0: 1, 1: 1, 2: 2, 64: 64, 65: 64} {
		add(t, r.catalog, catalog.Tasklists, "shop", &yardv1.Tasklist{Name: "main", Partitions: stored})
		testkit.Equal(t, fmt.Sprintf("%d partitions are stored, taken for", stored), r.catalog.Partitions("shop", "main"), want)
	}
}

// Answers that a poll reports as lost are reported to the owners of all shards: another one may have sent them.
func TestLostAnswersAreReportedToAllShards(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		<-r.poll(time.Minute)
		if got := r.bus.givenUp; len(got) != 1 || got[0].Domain != "shop" || !slices.Equal(got[0].Inboxes, []string{"old"}) {
			t.Errorf("matching was notified of %v", got)
		}
	})
}

func TestBadPartitionsAreRefused(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		for n, ok := range map[int32]bool{-1: false, 0: true, 1: true, 64: true, 65: false} {
			err := r.putPartitions(fmt.Sprint("l", n+1), n)
			if ok {
				wantCode(t, err, "")
			} else {
				wantAt(t, err, fault.InvalidArgument, "/tasklist/partitions")
			}
		}
		testkit.Equal(t, "are stored", catalog.Tasklists.Count(r.catalog.Catalog, "shop"), 3)
	})
}

// I7: owners report each partition every second.
func TestPartitionedTasklistsOfADomainAreBounded(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		for i := range validate.PartitionedMax {
			wantCode(t, r.putPartitions(fmt.Sprint("l", i), 2), "")
		}
		wantAt(t, r.putPartitions("one-more", 2), fault.FailedPrecondition, "/tasklist/partitions")
		wantCode(t, r.putPartitions("one-more", 1), "")
		wantAt(t, r.putPartitions("one-more", 2), fault.FailedPrecondition, "/tasklist/partitions")
		wantCode(t, r.putPartitions("l7", 9), "")
		wantCode(t, r.putPartitions("l7", 0), "")
		wantCode(t, r.putPartitions("one-more", 2), "")
	})
}

// pollersOf has shards tell of pollers, at most three on a page.
func pollersOf(asked *[rigShards]int, shards ...[]*yardv1.Poller) func(*Deps) {
	return func(d *Deps) {
		d.Owners.MatchingDescribe = func(_ context.Context, m int, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
			asked[m]++
			all := shards[m]
			if req.ListPollers == 0 {
				return &rpcv1.DescribeShardResponse{Pollers: int64(len(all)), WaitingPolls: 1}, nil
			}
			out := &rpcv1.DescribeShardResponse{KnownForMs: int64(100 - m)}
			for _, p := range all {
				if p.Worker > req.After {
					if len(out.ListedPollers) == min(3, int(req.ListPollers)) {
						out.More = true
						break
					}
					out.ListedPollers = append(out.ListedPollers, p.CloneVT())
				}
			}
			return out, nil
		}
	}
}

// A worker that polls several partitions is one poller, on the page where it belongs, whatever pages the shards make.
func TestPollersOfSeveralPartitionsAreJoined(t *testing.T) {
	at := func(worker string, agoMS int64, polls int32) *yardv1.Poller {
		return &yardv1.Poller{Worker: worker, Version: fmt.Sprint("v", agoMS), SeenAgoMs: agoMS, WaitingPolls: polls}
	}
	first := []*yardv1.Poller{at("a", 9, 1), at("b", 5, 2), at("e", 1, 1), at("f", 1, 0), at("g", 1, 0)}
	second := []*yardv1.Poller{at("b", 4, 3), at("c", 1, 1), at("d", 2, 1), at("e", 3, 1), at("h", 1, 0)}
	want := "a 9 1, b 4 5, c 1 1, d 2 1, e 1 2, f 1 0, g 1 0, h 1 0, "
	for _, limit := range []int32{1, 2, 3, 4, 1000} {
		synctest.Test(t, func(t *testing.T) {
			var shards [rigShards]int
			r := newRig(t, pollersOf(&shards, first, second))
			wantCode(t, r.putPartitions("main", 2), "")
			got := ""
			for cursor, last := "", false; !last; {
				page := answerOf[*yardv1.TasklistPollersResponse](t, r, "shop", true, r.TasklistPollers, &yardv1.TasklistPollersRequest{Tasklist: "main", Limit: limit, Cursor: cursor})
				if len(page.Pollers) > int(limit) || page.KnownForMs != 99 {
					t.Errorf("%d on a page of %d, known for %d ms", len(page.Pollers), limit, page.KnownForMs)
				}
				for _, p := range page.Pollers {
					got += fmt.Sprintf("%s %d %d, ", p.Worker, p.SeenAgoMs, p.WaitingPolls)
					if p.Version != fmt.Sprint("v", p.SeenAgoMs) {
						t.Errorf("%s is of %s, seen %d ms ago", p.Worker, p.Version, p.SeenAgoMs)
					}
				}
				cursor, last = page.NextCursor, page.NextCursor == ""
			}
			testkit.Equal(t, fmt.Sprintf("pages of %d", limit), got, want)
			resp, err := asked(r, "shop", true, r.DescribeTasklist, &yardv1.DescribeTasklistRequest{Tasklist: "main"})
			if d := resp.(*yardv1.DescribeTasklistResponse); err != nil || d.Pollers != 8 || d.WaitingPolls != 2 {
				t.Errorf("described as %v, %v", d, err)
			}
		})
	}
}

// One partition costs one question; what shards know of partitions of before is counted in a description.
func TestPollersOfOnePartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shards [rigShards]int
		r := newRig(t, pollersOf(&shards, []*yardv1.Poller{{Worker: "a"}}, []*yardv1.Poller{{Worker: "a"}, {Worker: "b"}}))
		got, err := asked(r, "shop", true, r.TasklistPollers, &yardv1.TasklistPollersRequest{Tasklist: "main"})
		if err != nil || len(got.(*yardv1.TasklistPollersResponse).Pollers) != 1+shardOf(0) || shards[shardOf(0)] != 1 || shards[shardOf(1)] != 0 {
			t.Errorf("got %v, %v; asked %v times", got, err, shards)
		}
		var d codec.Message
		if d, err = asked(r, "shop", true, r.DescribeTasklist, &yardv1.DescribeTasklistRequest{Tasklist: "main"}); err != nil || d.(*yardv1.DescribeTasklistResponse).Pollers != 2 {
			t.Errorf("described as %v, %v", d, err)
		}
	})
}
