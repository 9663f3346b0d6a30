package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// lines are the runs of tasks with order keys: which task of a key began when, and whether two did at a time.
type lines struct {
	mu      sync.Mutex
	running map[string]int
	began   map[string][]int
	wrong   []string
}

// run is one attempt of the n-th task of a key.
func (l *lines) run(key string, n int, do func() error) error {
	l.mu.Lock()
	if l.running[key]++; l.running[key] > 1 {
		l.wrong = append(l.wrong, fmt.Sprintf("task %d of %s began while another one ran", n, key))
	}
	first := !slices.Contains(l.began[key], n)
	if first {
		l.began[key] = append(l.began[key], n)
	}
	l.mu.Unlock()
	var err error
	if first {
		err = do()
	}
	l.mu.Lock()
	l.running[key]--
	l.mu.Unlock()
	return err
}

// TestTasksOfAKeyRunInOrder: many workers, all priorities, attempts that fail and tasks that are delayed; the tasks of a key run one at a time, in the order in
// which they were handed in, and those that are delayed in that of their times.
func TestTasksOfAKeyRunInOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const keys, each = 12, 10
		delayed := func(n, k int) bool { return (n+k)%5 == 0 }
		type job struct {
			Key string
			N   int
		}
		l := &lines{running: map[string]int{}, began: map[string][]int{}}
		stop := w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "step", func(_ context.Context, j job) (any, error) {
				return nil, l.run(j.Key, j.N, func() error {
					if j.N%4 == 1 {
						return errors.New("the first attempt fails")
					}
					return nil
				})
			})
		})
		var all []string
		for from := 0; from < each; from += 2 { // a request has two tasks of each key
			var tasks []yard.Task
			for n := from; n < from+2; n++ {
				for k := range keys {
					task := yard.Task{
						Type: "step", Tasklist: list, Payload: job{fmt.Sprint("key ", k), n}, OrderKey: fmt.Sprint("key ", k), Priority: 1 + (n*7+k)%5,
						Retry: &yard.RetryPolicy{MaxAttempts: 5, InitialInterval: 10 * time.Millisecond},
					}
					if delayed(n, k) {
						task.Delay = 200 * time.Millisecond
					}
					tasks = append(tasks, task)
				}
			}
			ids, err := w.client.SubmitMany(w.soon(), tasks)
			testkit.NoError(t, err)
			all = append(all, ids...)
		}
		for _, id := range all {
			equal(t, id, w.ended(id).State.Name(), "completed")
		}
		stop()
		for _, wrong := range l.wrong {
			t.Error(wrong)
		}
		for k := range keys {
			began := l.began[fmt.Sprint("key ", k)]
			later := slices.DeleteFunc(slices.Clone(began), func(n int) bool { return !delayed(n, k) })
			others := slices.DeleteFunc(slices.Clone(began), func(n int) bool { return delayed(n, k) })
			if len(began) != each || !slices.IsSorted(others) || !slices.IsSorted(later) {
				t.Errorf("the tasks of key %d began in the order %v", k, began)
			}
		}
	})
}

// TestAStuckTaskHoldsUpItsKeyOnly: while it waits for its next attempt or for a worker the next one is not given out. However it ends, that one has its turn.
// One that waits for its time holds up no other.
func TestAStuckTaskHoldsUpItsKeyOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		task := func(kind, key string) *yardv1.NewTask { return &yardv1.NewTask{Type: kind, OrderKey: key} }
		delayed := task("delayed", "delayed")
		delayed.DelayMs = 3_600_000
		ids := w.submit(task("fails", "fails"), delayed, task("dies", "dies"), task("left", "left"))
		next := w.submit(task("next", "fails"), task("free", "delayed"), task("next", "dies"), task("next", "left"))
		w.complete(w.takeOne("free"))
		w.ended(next[1])
		behind := w.submitOne(&yardv1.NewTask{Type: "behind", OrderKey: "left", StartWithinMs: 200})
		got := w.reach(next[0], "ready")
		equal(t, "its key", got.OrderKey, "fails")
		equal(t, "it waits for its turn", got.AwaitsTurn, true)
		equal(t, "the first one waits for its turn", w.reach(ids[0], "ready").AwaitsTurn, false)

		equal(t, "fail", w.fail(w.takeOne("fails"), &yardv1.Failure{DelayMs: 3_600_000}), "OK")
		w.reach(ids[0], "backoff")
		w.reach(ids[1], "waiting")
		equal(t, "one behind others expires", w.ended(behind).State.Name(), "expired")
		equal(t, "fail for good", w.fail(w.takeOne("dies"), &yardv1.Failure{NonRetryable: true}), "OK")
		w.ended(ids[2])
		p := w.takeOne("next")
		equal(t, "after the one that died", p.TaskId, next[2])
		w.complete(p)
		for i, id := range []string{ids[0], ids[3]} {
			equal(t, "cancel", w.cancel(id).Code, "OK")
			p := w.takeOne("next")
			equal(t, "after one that was cancelled", p.TaskId, []string{next[0], next[3]}[i])
			w.complete(p)
		}

		at := w.submitOne(task("first", "put off"))
		behind = w.submitOne(task("behind", "put off"))
		w.update(&yardv1.TaskUpdate{TaskId: at, DelayMs: 3_600_000})
		w.complete(w.takeOne("behind"))
		w.ended(behind)
		w.listed(yard.Filter{OrderKey: w.parked(at).OrderKey, States: []yard.State{"waiting"}}, at) // from the timer store
		w.update(&yardv1.TaskUpdate{TaskId: at, RunNow: true})
		w.complete(w.takeOne("first"))
		w.ended(at)

		blocks := task("blocks", "blocked")
		blocks.OrderPolicy = yardv1.OrderPolicy_ORDER_POLICY_BLOCK
		blocked := w.submitOne(blocks)
		free := w.submitOne(task("next", "blocked"))
		for range 2 { // once more after an operator wants that
			equal(t, "fail for good", w.fail(w.takeOne("blocks"), &yardv1.Failure{NonRetryable: true, Message: "no"}), "OK")
			got := w.reach(blocked, "backoff")
			equal(t, "it blocks its key", got.Blocked, true)
			equal(t, "the one behind", w.reach(free, "ready").AwaitsTurn, true)
			w.listed(yard.Filter{OrderKey: "blocked"}, blocked, free)
			w.listed(yard.Filter{OrderKey: "blocked", States: []yard.State{"ready"}}, free)
			w.listed(yard.Filter{Blocked: true}, blocked)
			w.listed(yard.Filter{OrderKey: "fails", Blocked: true})
			w.update(&yardv1.TaskUpdate{TaskId: blocked, RunNow: true})
		}
		w.complete(w.takeOne("blocks"))
		w.complete(w.takeOne("next"))
		w.ended(free)

		first := w.submitOne(task("first", "cancelled"))
		second, third := w.submitOne(task("second", "cancelled")), w.submitOne(task("third", "cancelled"))
		equal(t, "cancel one behind", w.cancel(second).Code, "OK")
		w.ended(second)
		equal(t, "the third waits", w.reach(third, "ready").AwaitsTurn, true)
		w.complete(w.takeOne("first"))
		w.ended(first)
		w.complete(w.takeOne("third"))
	})
}

// listed waits until a list has these tasks, in any order.
func (w *world) listed(f yard.Filter, want ...string) {
	w.t.Helper()
	w.eventually(func() error {
		found, err := w.client.List(w.soon(), f)
		var got []string
		for _, task := range found {
			got = append(got, task.ID)
		}
		slices.Sort(got)
		slices.Sort(want)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%+v: listed %v, want %v", f, got, want)
		}
		return err
	})
}

// TestOrderKeysAreRepeated: a request that is sent again finds its tasks, those of several partitions too.
func TestOrderKeysAreRepeated(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var tasks []*yardv1.NewTask
		for k := range 20 {
			tasks = append(tasks, &yardv1.NewTask{Type: "x", OrderKey: fmt.Sprint(k)})
		}
		req := &yardv1.SubmitRequest{Tasklist: list, Tasks: tasks}
		first, err := w.handIn(req)
		testkit.NoError(t, err)
		places := map[int]bool{}
		for tries := int32(2); tries < 4; tries++ {
			req.Tries += tries
			again := must[yardv1.SubmitResponse](w, "tasks.submit", req)
			for i, r := range first.Results {
				equal(t, "repeated", again.Results[i].TaskId, r.TaskId)
				places[w.partition(r.TaskId)] = true
			}
		}
		if len(places) < 2 {
			t.Errorf("20 keys are in %d partitions", len(places))
		}
		equal(t, "tasks", len(w.take(20)), 20)
		w.nothing(list)
	})
}

// TestAnOrderKeyWithAUniqueKey: while a task has the unique key, no other of its order key is created with it, and those that there are run in turn. It is free after the end.
func TestAnOrderKeyWithAUniqueKey(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		task := func(order, unique string) *yardv1.NewTask {
			return &yardv1.NewTask{Type: "x", OrderKey: order, UniqueKey: unique}
		}
		outcome, first := w.once(task("a", "1"), task("a", "2"), task("b", "1"))
		equal(t, "outcome", outcome, "created created created")
		outcome, again := w.once(task("a", "1"), task("b", "2"))
		equal(t, "outcome", outcome, "existing created")
		equal(t, "the task that has the key", again[0], first[0])
		ran := map[string]bool{}
		for range 2 {
			for _, p := range w.take(2, "x") {
				ran[p.TaskId] = true
				w.complete(p)
			}
			equal(t, "the first ones of the keys first", ran[first[0]] && ran[first[2]], true)
		}
		equal(t, "tasks that ran", len(ran), 4)
		w.ended(first[0])
		w.freed(task("a", "1"))
	})
}

// TestOrderKeysSurviveARestart: what waits for its turn still does, behind one that runs and one that waits for its next attempt.
func TestOrderKeysSurviveARestart(t *testing.T) {
	testkit.Slow(t, "restarts a system of its own")
	eachKind(t, func(t *testing.T, kind stack.Tables) {
		cfg := stack.Config{Tables: kind, DataDir: t.TempDir()}
		w := enter(t, own(t, cfg))
		task := func(kind, key string) *yardv1.NewTask { return &yardv1.NewTask{Type: kind, OrderKey: key} }
		ids := w.submit(task("runs", "a"), task("fails", "b"), task("next", "a"), task("next", "b"))
		running := w.takeOne("runs")
		equal(t, "fail", w.fail(w.takeOne("fails"), &yardv1.Failure{DelayMs: 3_600_000}), "OK")
		for range 2 {
			w = w.restarted(cfg)
			w.reach(ids[0], "running")
			w.reach(ids[1], "backoff")
			for _, id := range ids[2:] {
				equal(t, "it waits for its turn", w.reach(id, "ready").AwaitsTurn, true)
			}
		}
		equal(t, "complete", w.complete(running), "OK")
		p := w.takeOne("next")
		equal(t, "the next one of a", p.TaskId, ids[2])
		w.complete(p)
		w.cancel(ids[1])
		p = w.takeOne("next")
		equal(t, "the next one of b", p.TaskId, ids[3])
		w.complete(p)
	})
}

// TestAKeyIsFull: past its bound submits to it are refused with a reason, others go on, and it has room again when a task has ended. A client waits for that.
func TestAKeyIsFull(t *testing.T) {
	t.Parallel()
	services := stack.DefaultServices()
	services.History.Partition.OrderKeyTasks = 3
	w := enter(t, own(t, stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir(), Services: &services}))
	task := func(key string) *yardv1.NewTask { return &yardv1.NewTask{Type: "step", OrderKey: key} }
	w.submit(task("a"), task("a"), task("a"))
	others := 0
	w.eventually(func() error {
		others++
		_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{task(fmt.Sprint("b", others)), task("a")}})
		f := fault.From(err)
		switch {
		case err == nil:
			return errors.New("it has room")
		case f.Code != fault.ResourceExhausted || f.Path != "/tasks/1/order_key" || f.Detail[fault.DetailReason] != "order_key_full" || f.RetryAfter <= 0:
			t.Fatalf("%+v", f)
		}
		return nil
	})
	w.submitOne(task("c"))
	waiting := make(chan error, 1)
	go func() {
		_, err := w.client.Submit(w.soon(), yard.Task{Type: "step", Tasklist: list, OrderKey: "a"})
		waiting <- err
	}()
	for {
		select {
		case err := <-waiting:
			testkit.NoError(t, err)
			return
		default:
			w.complete(w.takeOne("step"))
		}
	}
}
