package scenario_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// parts is over how many partitions the tasklist of these scenarios is spread.
const parts = 4

// waits waits until each partition has reported, and what was reported last is as it should be. It calls do before each look.
func (w *world) waits(do func(), as func(last []*rpcv1.PartitionLoad) bool) {
	w.t.Helper()
	came := make(chan []*rpcv1.PartitionLoad, 1000)
	sub, err := w.inside().Conn().Subscribe(topology.HintTasklistLoad, func(m *nats.Msg) {
		var load rpcv1.TasklistLoad
		if load.UnmarshalVT(m.Data) == nil {
			came <- load.Partitions
		}
	})
	testkit.NoError(w.t, err)
	defer func() { _ = sub.Unsubscribe() }() // fails where the connection is closed
	last := make([]*rpcv1.PartitionLoad, parts)
	for ctx := w.soon(); ; {
		do()
		select {
		case all := <-came:
			for _, p := range all {
				if p.Domain == w.domain && p.Tasklist == list {
					last[p.TasklistPartition] = p
				}
			}
		case <-ctx.Done():
			w.t.Fatalf("the last reports: %v", last)
		}
		if !slices.Contains(last, nil) && as(last) {
			return
		}
	}
}

// spread has the tasklist spread over partitions, and waits until all parts of the engine know it: tasks come to more than the first, and polls to all.
// On a slow machine the trigger of a probe comes twice, since its poll waited in vain for 2 s: polls take what is left, so each partition is empty then.
func (w *world) spread() {
	w.t.Helper()
	testkit.NoError(w.t, testkit.Err(w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, Partitions: parts})))
	known := false
	w.waits(func() {
		w.submitOne(&yardv1.NewTask{Type: "probe"})
		w.complete(w.takeOne("probe"))
	}, func(last []*rpcv1.PartitionLoad) bool {
		known = known || slices.ContainsFunc(last[1:], func(p *rpcv1.PartitionLoad) bool { return p.PerSecond > 0 })
		return known
	})
	w.waits(func() {
		if left, err := w.poll(&yardv1.PollRequest{Tasklist: list, MaxTasks: 1, Types: []string{"probe"}}); len(left) > 0 {
			w.t.Fatalf("a probe that has ended came again: %v, %v", left, err)
		}
	}, func(last []*rpcv1.PartitionLoad) bool { return ready(last) == 0 })
}

// ready is how many triggers wait in all partitions.
func ready(last []*rpcv1.PartitionLoad) (n int64) {
	for _, p := range last {
		n += p.Triggers
	}
	return n
}

// TestI11_SharesOverPartitionsAreAsTheWeights: each partition has a virtual time of its own, and all together start groups by their weights, within 5 %
// of all that starts, also of mixed requests (decision 37).
func TestI11_SharesOverPartitionsAreAsTheWeights(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		const each, first = 400, 490
		weights := map[string]float64{"a": 1, "b": 2, "c": 4}
		for group, weight := range weights {
			testkit.NoError(t, testkit.Err(w.client.PutGroup(w.soon(), yard.Group{Name: group, Weight: weight})))
		}
		w.spread()
		// Tasks are given out in parts, so each part has as many of each group: a partition without a group has no share for it.
		const requests = 4
		for range requests {
			var all []*yardv1.NewTask
			for range each / requests {
				for _, group := range []string{"a", "b", "c"} {
					all = append(all, &yardv1.NewTask{Type: "x", Group: group})
				}
			}
			w.submit(all...)
		}
		w.waits(func() {}, func(last []*rpcv1.PartitionLoad) bool { return ready(last) >= 3*each })
		got := map[string]int{}
		for range first {
			got[w.takeOne("x").Group]++
		}
		for group, weight := range weights {
			if share := float64(got[group]) / first; math.Abs(share-weight/7) > 0.05 {
				t.Errorf("of the first %d: %v", first, got)
			}
		}
	})
}

// TestI11_AFloodOfPartitionsHoldsUpNoOther: a flood waits in three of four partitions, and one task of another group in the fourth, which is all that
// waits there. It has its turn after some polls, not after the flood, though nearly all that waits is elsewhere.
func TestI11_AFloodOfPartitionsHoldsUpNoOther(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	eachKind(t, func(t *testing.T, tables stack.Tables) {
		// One partition of history, which gives tasks out in parts of 128: so the test knows what is where.
		w := enter(t, own(t, stack.Config{Partitioning: topology.Partitioning{History: 1, Matching: parts}, Tables: tables}))
		w.spread()
		const part = 128
		flood := many((parts-1)*part, &yardv1.NewTask{Type: "x", Group: "flood"})
		w.submit(flood...)
		sent := int64(len(flood))
		all := func(last []*rpcv1.PartitionLoad) bool { return ready(last) >= sent } // a trigger may come twice
		w.waits(func() {}, all)
		other, isAlone := "", false
		for !isAlone { // each request goes to the next partition: one of them has nothing else
			other = fmt.Sprint("other", sent)
			w.submitOne(&yardv1.NewTask{Type: "x", Group: other})
			if sent++; sent > int64(len(flood))+parts {
				t.Fatal("no partition has one task only")
			}
			w.waits(func() {}, func(last []*rpcv1.PartitionLoad) bool {
				isAlone = all(last) && slices.ContainsFunc(last, func(p *rpcv1.PartitionLoad) bool { return p.Triggers == 1 })
				return all(last)
			})
		}
		w.waits(func() {}, all) // the frontend knows
		turn := 1
		for w.takeOne("x").Group != other {
			turn++
		}
		if turn > 6*parts {
			t.Errorf("its turn was the %dth", turn)
		}
	})
}
