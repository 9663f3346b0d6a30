package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// TestPrioritiesComeOutSorted holds the only slot of a type while its tasks gather
// in the table, so that what comes then was chosen among all of them.
func TestPrioritiesComeOutSorted(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.setType(yard.TaskType{Name: "x", MaxConcurrency: 1})
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
		equal(t, "order", strings.Join(got, " "), "1 1 2 3 4 5 5")
	})
}

// TestOneTypeComesInOrder: tasks of one request and one type start in its order,
// also where their triggers are sent again.
func TestOneTypeComesInOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var tasks []*yardv1.NewTask
		for range 200 {
			tasks = append(tasks, &yardv1.NewTask{Type: "x"})
		}
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
			t.Errorf("they came as %v", got)
		}
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
	if err != nil {
		w.t.Fatal(err)
	}
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
		answer := make(chan []*yardv1.PolledTask, 1)
		go func() {
			resp, err := call[yardv1.PollResponse](w, "tasks.poll", &yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 20_000, Types: []string{"late"}})
			if err != nil {
				t.Error(err)
			}
			answer <- resp.GetTasks()
		}()
		w.pollsWait(1)
		w.submit(&yardv1.NewTask{Type: "early"}, &yardv1.NewTask{Type: "late"})
		if tasks := <-answer; len(tasks) != 1 || tasks[0].Type != "late" {
			t.Errorf("the poll got %v", tasks)
		}
		equal(t, "type", w.takeOne().Type, "early")
	})
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
			go func() {
				resp, err := call[yardv1.PollResponse](w, "tasks.poll", &yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 30_000})
				if err != nil || len(resp.Tasks) != 1 {
					t.Errorf("a poll ended with %v, %v", resp, err)
					answers <- nil
					return
				}
				answers <- resp.Tasks[0]
			}()
		}
		w.pollsWait(polls)
		var tasks []*yardv1.NewTask
		for range polls {
			tasks = append(tasks, &yardv1.NewTask{Type: "x"})
		}
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

		resp := must[yardv1.PollResponse](w, "tasks.poll", &yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 300})
		equal(t, "tasks", len(resp.Tasks), 0)
	})
}
