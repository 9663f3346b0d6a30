package scenario_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestStrictPrioritiesComeOutSorted holds the only slot of a type while its tasks gather
// in the table, so that what comes then was chosen among all of them. SEEDS 2.3.
func TestStrictPrioritiesComeOutSorted(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "x", MaxConcurrency: 1})
		testkit.NoError(t, testkit.Err(w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, StrictPriorities: true})))
		w.underOneOwner(func() error {
			w.submitOne(&yardv1.NewTask{Type: "x"})
			holder := w.takeOne()
			var all []string
			for _, p := range []int32{5, 3, 1, 4, 2, 1, 5} {
				all = append(all, w.submitOne(&yardv1.NewTask{Type: "x", Priority: p}))
			}
			w.known(all)
			equal(t, "verdict", w.complete(holder), "OK")
			var got []string
			for range all {
				p := w.takeOne()
				got = append(got, fmt.Sprint(p.Priority))
				equal(t, "verdict", w.complete(p), "OK")
			}
			if order := strings.Join(got, " "); order != "1 1 2 3 4 5 5" {
				return fmt.Errorf("they came as %s", order)
			}
			return nil
		})
	})
}

// A flood of urgent tasks leaves the others their turns, unless the tasklist is strict.
func TestAFloodOfUrgentTasksLeavesTheOthersTheirTurns(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "x", MaxConcurrency: 1})
		for strict, others := range map[bool]int{false: 1, true: 0} { // among the first 17
			testkit.NoError(t, testkit.Err(w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, StrictPriorities: strict})))
			w.underOneOwner(func() error {
				holder := w.submitOne(&yardv1.NewTask{Type: "x"})
				running := w.takeOne("x")
				equal(t, "runs", running.TaskId, holder)
				all := slices.Concat(w.submit(many(30, &yardv1.NewTask{Type: "x", Priority: 1})...), w.submit(many(2, &yardv1.NewTask{Type: "x", Priority: 5})...))
				w.known(all)
				equal(t, "verdict", w.complete(running), "OK")
				var got []int32
				for range all {
					p := w.takeOne("x")
					got = append(got, p.Priority)
					equal(t, "verdict", w.complete(p), "OK")
				}
				if n := len(slices.DeleteFunc(slices.Clone(got[:17]), func(p int32) bool { return p == 1 })); n != others {
					return fmt.Errorf("strict %t: they came as %v", strict, got)
				}
				return nil
			})
		}
	})
}

// TestOneTypeComesInOrder: tasks of one request and one type start in its order,
// also where their triggers are sent again.
func TestOneTypeComesInOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.underOneOwner(func() error {
			tasks := many(200, &yardv1.NewTask{Type: "x"})
			all := w.submit(tasks...)
			place := map[string]int{}
			for i, id := range all {
				place[id] = i
			}
			var got []int
			for _, p := range w.take(len(all)) {
				got = append(got, place[p.TaskId])
			}
			if !slices.IsSorted(got) {
				return fmt.Errorf("they came as %v", got)
			}
			return nil
		})
	})
}

// underOneOwner runs what is promised only while the shard of the tasklist has one owner: it runs it again
// where another one came meanwhile, as on a slow machine.
func (w *world) underOneOwner(run func() error) {
	w.t.Helper()
	w.eventually(func() error {
		owner := w.owner()
		err := run()
		if now := w.owner(); now != owner {
			return fmt.Errorf("owner %d followed owner %d", now, owner)
		}
		testkit.NoError(w.t, err)
		return nil
	})
}

// known returns when matching knows of the tasks, ready ones of full types. A
// partition's hints come in order, so matching knows them when it has granted a
// later task of each of their partitions.
func (w *world) known(all []string) {
	w.t.Helper()
	missing := map[int]bool{}
	for _, id := range all {
		missing[w.partition(id)] = true
	}
	w.eventually(func() error {
		if len(missing) > 0 {
			later := w.submitOne(&yardv1.NewTask{Type: "marker", Priority: 1})
			w.takeOne("marker")
			delete(missing, w.partition(later))
		}
		if len(missing) > 0 {
			return fmt.Errorf("no marker has come from partitions %v", missing)
		}
		return nil
	})
}

// partition is the history partition of a task.
func (w *world) partition(id string) int {
	w.t.Helper()
	parsed, err := ids.ParseTaskID(id)
	testkit.NoError(w.t, err)
	return parsed.Partition()
}

func TestPollsTakeOnlyTheirTypes(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.submit(&yardv1.NewTask{Type: "a"}, &yardv1.NewTask{Type: "b.c"}, &yardv1.NewTask{Type: "d"})
		equal(t, "type", w.takeOne("b.c").Type, "b.c")
		got := map[string]bool{}
		for _, p := range w.take(2, "a", "d", "unknown") {
			got[p.Type] = true
		}
		if !got["a"] || !got["d"] {
			t.Errorf("got %v, want a and d", got)
		}

		// A long poll is not ended by a task of another type.
		answer := make(chan *yardv1.PolledTask, 1)
		go func() { answer <- w.longPoll("late") }()
		w.pollsWait(1)
		w.submit(&yardv1.NewTask{Type: "early"}, &yardv1.NewTask{Type: "late"})
		if p := <-answer; p.GetType() != "late" {
			t.Errorf("the poll got %v", p)
		}
		equal(t, "type", w.takeOne().Type, "early")
	})
}

// longPoll polls for one task until it comes, nil if it does not. It polls again where a poll ends without
// a task, which is an error where neither its time was over nor its shard was given to a new owner. It may be
// called on any goroutine.
func (w *world) longPoll(types ...string) *yardv1.PolledTask {
	const wait = 60 * time.Second
	for {
		owner, began := w.owner(), time.Now()
		tasks, err := w.poll(&yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: wait.Milliseconds(), Types: types})
		switch {
		case err != nil || len(tasks) > 1:
			w.t.Errorf("a poll for one task ended with %v, %v", tasks, err)
			return nil
		case len(tasks) == 1:
			return tasks[0]
		case time.Since(began) < wait && !w.followed(owner):
			w.t.Errorf("a poll ended without a task after %v, and its shard has the same owner", time.Since(began))
			return nil
		}
	}
}

// owner is the epoch of the owner that serves the shard of the tasklist, 0 where that cannot be read.
func (w *world) owner() uint64 {
	shard := ids.MatchingShard(w.domain, list, 0, w.stack.Partitioning.Matching)
	js := w.inside()
	epochs, err := js.KeyValue(w.soon(), topology.CheckpointsBucket)
	if err != nil {
		w.t.Error(err)
		return 0
	}
	at, err := epochs.Get(w.soon(), topology.MatchingEpoch(shard))
	if err != nil {
		w.t.Error(err)
		return 0
	}
	var epoch ownership.Epoch
	testkit.Check(w.t, json.Unmarshal(at.Value(), &epoch))
	return epoch.Open
}

// followed waits for a while until there is a later owner, and tells whether there is one.
func (w *world) followed(owner uint64) bool {
	for end := time.Now().Add(within); time.Now().Before(end); {
		if w.owner() > owner {
			return true
		}
	}
	return false
}

// pollsWait waits until n polls wait at the tasklist.
func (w *world) pollsWait(n int64) {
	w.t.Helper()
	w.eventually(func() error {
		resp := must[yardv1.DescribeTasklistResponse](w, "tasklists.describe", &yardv1.DescribeTasklistRequest{Tasklist: list})
		if resp.WaitingPolls != n {
			return fmt.Errorf("%d polls wait, want %d", resp.WaitingPolls, n)
		}
		return nil
	})
}

func TestLongPollsWaitForWork(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const polls = 5
		answers := make(chan *yardv1.PolledTask, polls)
		for range polls {
			go func() { answers <- w.longPoll() }()
		}
		w.pollsWait(polls)
		tasks := many(polls, &yardv1.NewTask{Type: "x"})
		ids := w.submit(tasks...)
		seen := map[string]bool{}
		for range ids {
			p := <-answers
			if p == nil {
				t.FailNow()
			}
			seen[p.TaskId] = true
			equal(t, "verdict", w.complete(p), "OK")
		}
		equal(t, "different tasks", len(seen), polls)

		w.eventually(func() error {
			tasks, err := w.poll(&yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 300})
			equal(t, "tasks", len(tasks), 0)
			return err
		})
	})
}
