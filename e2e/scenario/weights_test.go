package scenario_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// submitTo hands n tasks of a type in to a tasklist.
func (w *world) submitTo(tasklist, typ string, n int) []string {
	w.t.Helper()
	req := &yardv1.SubmitRequest{Tasklist: tasklist}
	for range n {
		req.Tasks = append(req.Tasks, &yardv1.NewTask{Type: typ})
	}
	resp, err := w.handIn(req)
	testkit.NoError(w.t, err)
	return resp.TaskIDs()
}

// await waits until a channel is closed.
func (w *world) await(done <-chan struct{}) {
	w.t.Helper()
	select {
	case <-done:
	case <-w.soon().Done():
		w.t.Fatal("it took too long")
	}
}

// TestAWorkerRunsItsTasklistsByWeight: of the tasklists that have work, whichever they are, each gets its share of what a worker runs.
func TestAWorkerRunsItsTasklistsByWeight(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		for round, of := range [][]int{{1, 2}, {1, 2, 4}} {
			weights, name := map[string]int{}, func(weight int) string { return fmt.Sprint("list", round, "-", weight) }
			for _, weight := range []int{1, 2, 4} {
				weights[name(weight)] = weight
			}
			sum := 0
			for _, weight := range of {
				w.submitTo(name(weight), "x", 1000)
				w.described(name(weight), func(d yard.TasklistInfo) bool { return d.Ready >= 1000 })
				sum += weight
			}
			const counted = 1000
			var mu sync.Mutex
			all, ran, done := 0, map[string]float64{}, make(chan struct{})
			w.work(name(1), func(worker *yard.Worker) {
				yard.Handle(worker, "x", func(ctx context.Context, _ struct{}) (struct{}, error) {
					mu.Lock()
					defer mu.Unlock()
					if all++; all <= counted {
						ran[yard.Info(ctx).Tasklist] += 1. / counted
					}
					if all == counted {
						close(done)
					}
					return struct{}{}, nil
				})
			}, yard.WithWeights(weights), yard.WithConcurrency(20))
			w.await(done)
			t.Logf("of the tasks: %v", ran)
			for _, weight := range of {
				// The test of the worker's core holds the exact ratio. Here a late answer of one shard gives the others more.
				if got, want := ran[name(weight)], float64(weight)/float64(sum); math.Abs(got-want) > 0.12 {
					t.Errorf("with work in those of weights %v that of weight %d got %.3f of the tasks, want %.3f", of, weight, got, want)
				}
			}
		}
	})
}

// TestAFloodLeavesSlotsToOtherTasklists: while the tasks of one tasklist use all slots that they get, a task of each other one runs.
func TestAFloodLeavesSlotsToOtherTasklists(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const lists, slots = 8, 64
		w.submitTo("flood", "flood", 2*slots)
		others, over := map[string]int{}, make(chan struct{})
		for i := range lists - 1 {
			others[fmt.Sprint("list", i)] = 1
		}
		testkit.NoError(t, testkit.Err(w.client.PutTasklist(w.soon(), yard.Tasklist{Name: "list3", Partitions: 5})))
		running, full := 0, make(chan struct{})
		var mu sync.Mutex
		w.work("flood", func(worker *yard.Worker) {
			yard.Handle(worker, "flood", func(ctx context.Context, _ struct{}) (struct{}, error) {
				mu.Lock()
				if running++; running == slots-len(others) {
					close(full)
				}
				mu.Unlock()
				return struct{}{}, hold(ctx, over)
			})
			yard.Handle(worker, "sparse", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
		}, yard.WithWeights(others), yard.WithConcurrency(slots))
		w.await(full)
		for range 3 {
			for _, list := range slices.Sorted(maps.Keys(others)) {
				if _, err := w.client.Wait(w.soon(), w.submitTo(list, "sparse", 1)[0]); err != nil {
					t.Fatalf("the task of %s: %v", list, err)
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if close(over); running != slots-len(others) {
			t.Errorf("%d tasks of the flood ran at once in %d slots", running, slots)
		}
	})
}

// TestAWorkerWithWeightsRunsAll: the SDK's worker runs the tasks of all its tasklists, each once, even with fewer slots than tasklists.
func TestAWorkerWithWeightsRunsAll(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		book := &spreadBook{from: map[string]time.Time{}, to: map[string]time.Time{}, runs: map[string]int{}}
		for range 3 {
			w.work("list0", func(worker *yard.Worker) {
				yard.Handle(worker, "x", func(ctx context.Context, _ struct{}) (struct{}, error) {
					book.ran(yard.Info(ctx).TaskID)
					return struct{}{}, nil
				})
			}, yard.WithWeights(map[string]int{"list1": 2, "list2": 4}), yard.WithConcurrency(2))
		}
		for i := range 60 {
			began := time.Now()
			book.submitted(began, w.submitTo(fmt.Sprint("list", i%3), "x", 1+i%7))
		}
		w.eventually(book.complete)
	})
}

// overtakeMatching has each owner of a matching shard learn that it is overtaken, and take the next epoch.
func (w *world) overtakeMatching() {
	w.t.Helper()
	kv, err := w.inside().KeyValue(w.soon(), topology.CheckpointsBucket)
	testkit.NoError(w.t, err)
	for m := range w.stack.Partitioning.Matching {
		testkit.NoError(w.t, testkit.Err(ownership.TakeEpoch(w.soon(), kv, topology.MatchingEpoch(m), 0)))
	}
}
