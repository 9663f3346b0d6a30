package scenario_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// weightedLists are tasklists with weights, in order.
func weightedLists(weights ...int32) []*yardv1.PolledTasklist {
	all := make([]*yardv1.PolledTasklist, len(weights))
	for i, weight := range weights {
		all[i] = &yardv1.PolledTasklist{Name: fmt.Sprint("list", i), Weight: weight}
	}
	return all
}

// submitTo hands n tasks of a type in to a tasklist.
func (w *world) submitTo(tasklist, typ string, n int) []string {
	w.t.Helper()
	req := &yardv1.SubmitRequest{Tasklist: tasklist}
	for range n {
		req.Tasks = append(req.Tasks, &yardv1.NewTask{Type: typ})
	}
	resp, err := w.handIn(req)
	if err != nil {
		w.t.Fatalf("tasks.submit: %v", err)
	}
	return resp.TaskIDs()
}

// pollOf polls several tasklists once, and again where no one answers.
func (w *world) pollOf(req *yardv1.PollRequest) (tasks []*yardv1.PolledTask) {
	w.t.Helper()
	w.eventually(func() (err error) {
		tasks, err = w.poll(req)
		return err
	})
	return tasks
}

// backlog waits until so many tasks are ready in each of some tasklists.
func (w *world) backlog(n int, lists []*yardv1.PolledTasklist) {
	w.t.Helper()
	for _, l := range lists {
		w.eventually(func() error {
			if d, err := w.client.DescribeTasklist(w.soon(), l.Name); err != nil || d.Ready < int64(n) {
				return fmt.Errorf("%d are ready in %s: %w", d.Ready, l.Name, err)
			}
			return nil
		})
	}
}

// TestTasklistsGetPollsByWeight: while all have work, and while only some have.
func TestTasklistsGetPollsByWeight(t *testing.T) {
	testkit.Slow(t, "floods the system for half a minute and more")
	everywhere(t, func(t *testing.T, w *world) {
		lists := weightedLists(1, 2, 4)
		shares := func(of []int) (shares [3]float64) {
			const polls, each = 500, 4
			for _, i := range of {
				w.submitTo(lists[i].Name, "x", 1000)
				w.submitTo(lists[i].Name, "x", polls*each*3/4-1000)
				w.backlog(1000, lists[i:i+1])
			}
			var got [3]atomic.Int64
			var workers sync.WaitGroup
			for range each {
				workers.Go(func() {
					var all []*yardv1.PolledTask
					for range polls {
						for _, task := range w.pollOf(&yardv1.PollRequest{Tasklists: lists, MaxTasks: 1, WaitMs: 10_000}) {
							got[slices.IndexFunc(lists, func(l *yardv1.PolledTasklist) bool { return l.Name == task.Tasklist })].Add(1)
							all = append(all, task)
						}
					}
					w.complete(all...)
				})
			}
			workers.Wait()
			for i := range got {
				shares[i] = float64(got[i].Load()) / (polls * each)
			}
			return shares
		}
		for _, c := range []struct {
			of   []int
			want [3]float64
		}{
			{[]int{0, 1}, [3]float64{1. / 3, 2. / 3}},
			{[]int{0, 1, 2}, [3]float64{1. / 7, 2. / 7, 4. / 7}},
		} {
			got := shares(c.of)
			t.Logf("weights 1, 2, 4, work in %v: %.3f of the tasks", c.of, got)
			for i := range got {
				if math.Abs(got[i]-c.want[i]) > 0.05 {
					t.Errorf("with work in %v %s got %.3f of the tasks, want %.3f", c.of, lists[i].Name, got[i], c.want[i])
				}
			}
		}
	})
}

// TestASparseTaskIsDelivered: each task comes to the one poll that waits, in whichever of eight tasklists it is, once.
func TestASparseTaskIsDelivered(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		lists := weightedLists(1, 1, 1, 1, 1, 1, 1, 1)
		if _, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: lists[3].Name, Partitions: 5}); err != nil {
			t.Fatal(err)
		}
		w.putType(yard.TaskType{Name: "narrow", MaxConcurrency: 1})
		sparse := func(tasklist, typ string, req *yardv1.PollRequest) time.Duration {
			got := make(chan []*yardv1.PolledTask, 1)
			go func() { got <- w.pollOf(req) }()
			if typ == "x" { // it has visited them all by now, mostly; the promise does not depend on it
				w.nothing("none")
			}
			began := time.Now()
			id := w.submitTo(tasklist, typ, 1)[0]
			tasks := <-got
			for len(tasks) == 0 { // its owner was replaced
				tasks = w.pollOf(req)
			}
			took := time.Since(began)
			if len(tasks) != 1 || tasks[0].TaskId != id {
				t.Fatalf("got %v, want %s", tasks, id)
			}
			equal(t, "complete", w.complete(tasks...), "OK")
			return took
		}
		var waits, alone []time.Duration
		for i := range 80 {
			typ := []string{"x", "narrow"}[i%2]
			waits = append(waits, sparse(lists[i%len(lists)].Name, typ, &yardv1.PollRequest{Tasklists: lists, MaxTasks: 10, WaitMs: 30_000, Worker: "one"}))
			alone = append(alone, sparse("alone", typ, &yardv1.PollRequest{Tasklist: "alone", MaxTasks: 10, WaitMs: 30_000, Worker: "one"}))
		}
		slices.Sort(waits)
		slices.Sort(alone)
		at := func(all []time.Duration, i int) time.Duration { return all[i].Round(10 * time.Microsecond) }
		t.Logf("80 sparse tasks in 8 tasklists, from submit to worker: p50 %v, p99 %v; with a poll of the tasklist alone p50 %v, p99 %v",
			at(waits, 40), at(waits, 79), at(alone, 40), at(alone, 79))
		for _, l := range lists {
			w.eventually(func() error {
				page, err := w.client.TasklistPollers(w.soon(), l.Name)
				if err != nil || len(page.All) != 1 || page.All[0].Worker != "one" {
					return fmt.Errorf("the pollers of %s: %+v, %w", l.Name, page, err)
				}
				return nil
			})
		}
	})
}

// TestWhatAPollOfSeveralTasklistsAsksFor: only tasks of its types come, no more than it asks for, and one that may not wait is answered at once.
func TestWhatAPollOfSeveralTasklistsAsksFor(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		lists := weightedLists(1, 3)
		w.submitTo("list0", "other", 5)
		w.submitTo("list1", "other", 5)
		w.submitTo("list1", "mine", 5)
		w.backlog(5, lists[:1])
		w.backlog(10, lists[1:])
		got := 0
		for got < 5 {
			tasks := w.pollOf(&yardv1.PollRequest{Tasklists: lists, MaxTasks: 2, Types: []string{"mine", "none"}, WaitMs: 5000})
			for _, task := range tasks {
				if task.Type != "mine" || task.Tasklist != "list1" {
					t.Errorf("got %v", task)
				}
			}
			if got += len(tasks); len(tasks) > 2 {
				t.Errorf("%d tasks came", len(tasks))
			}
			if len(tasks) > 0 {
				w.complete(tasks...)
			}
		}
		if tasks := w.pollOf(&yardv1.PollRequest{Tasklists: lists, MaxTasks: 100, Types: []string{"mine"}}); len(tasks) != 0 {
			t.Errorf("got %v", tasks)
		}
		all := 0
		for all < 10 { // without a wait
			tasks := w.pollOf(&yardv1.PollRequest{Tasklists: lists, MaxTasks: 100})
			if all += len(tasks); len(tasks) > 0 {
				w.complete(tasks...)
			}
		}
	})
}

// TestAPollOfSeveralTasklistsIsRefused with the code and the field.
func TestAPollOfSeveralTasklistsIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for body, path := range map[string]string{
			`{"max_tasks":1,"tasklists":[{"name":"a"},{"name":"a"}]}`:                "/tasklists/1/name",
			`{"max_tasks":1,"tasklists":[{"name":"a"},{"name":"b","weight":1001}]}`:  "/tasklists/1/weight",
			`{"max_tasks":1,"tasklist":"a","tasklists":[{"name":"a"},{"name":"b"}]}`: "/tasklists",
		} {
			_, err := w.raw("tasks.poll", body)
			refused(t, err, fault.InvalidArgument)
			equal(t, "path", fault.From(err).Path, path)
		}
		_, err := w.raw("tasks.poll.a", `{"max_tasks":1,"tasklists":[{"name":"a"},{"name":"b"}]}`)
		refused(t, err, fault.InvalidArgument)
		equal(t, "path", fault.From(err).Path, "/tasklists")
	})
}

// TestAWorkerWithWeightsRunsAll: the SDK's worker runs the tasks of all its tasklists, each once.
func TestAWorkerWithWeightsRunsAll(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		book := &spreadBook{from: map[string]time.Time{}, to: map[string]time.Time{}, runs: map[string]int{}}
		for range 3 {
			w.work("list0", func(worker *yard.Worker) {
				yard.Handle(worker, "x", func(ctx context.Context, _ struct{}) (struct{}, error) {
					book.ran(yard.Info(ctx).TaskID)
					return struct{}{}, nil
				})
			}, yard.WithWeights(map[string]int{"list1": 2, "list2": 4}), yard.WithConcurrency(3))
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
	if err != nil {
		w.t.Fatal(err)
	}
	for m := range w.stack.Partitioning.Matching {
		if _, err := ownership.TakeEpoch(w.soon(), kv, topology.MatchingEpoch(m)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestPollsOfSeveralTasklistsOutliveAnOwner: polls rest at the frontend while a matching owner is replaced, and get what comes afterwards.
func TestPollsOfSeveralTasklistsOutliveAnOwner(t *testing.T) {
	t.Parallel()
	all, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	for _, tables := range all {
		t.Run(string(tables), func(t *testing.T) {
			t.Parallel()
			cfg := stack.Config{Partitioning: topology.DefaultPartitioning(), Tables: tables}
			w := enter(t, own(t, cfg))
			book := &spreadBook{from: map[string]time.Time{}, to: map[string]time.Time{}, runs: map[string]int{}}
			var workers sync.WaitGroup
			var stopped atomic.Bool
			defer workers.Wait()
			defer stopped.Store(true)
			for range 4 {
				workers.Go(func() {
					for !stopped.Load() {
						tasks, err := w.poll(&yardv1.PollRequest{Tasklists: weightedLists(1, 1, 1, 1), MaxTasks: 3, WaitMs: 2_000})
						if err != nil || len(tasks) == 0 {
							continue
						}
						for _, task := range tasks {
							book.ran(task.TaskId)
						}
						w.complete(tasks...)
					}
				})
			}
			hand := func(n int) {
				for i := range n {
					book.submitted(time.Now(), w.submitTo(fmt.Sprint("list", i%4), "x", 1))
				}
			}
			hand(8)
			w.eventually(book.complete)
			for range 3 {
				w.overtakeMatching()
				hand(8)
			}
			w.eventually(book.complete)
		})
	}
}
