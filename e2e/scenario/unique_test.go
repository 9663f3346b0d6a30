package scenario_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// once submits tasks with unique keys and returns what became of them, in the words of the API.
func (w *world) once(tasks ...*yardv1.NewTask) (outcomes string, ids []string) {
	w.t.Helper()
	resp, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: tasks})
	testkit.NoError(w.t, err)
	var words []string
	for _, r := range resp.Results {
		words = append(words, r.Outcome.Name())
		ids = append(ids, r.TaskId)
	}
	return strings.Join(words, " "), ids
}

// freed waits until a key is free, and returns the task that has it then.
func (w *world) freed(task *yardv1.NewTask) (id string) {
	w.t.Helper()
	w.eventually(func() error {
		outcome, ids := w.once(task)
		if id = ids[0]; outcome != "created" {
			return fmt.Errorf("the key %q is still that of %s", task.UniqueKey, id)
		}
		return nil
	})
	return id
}

// TestAUniqueKeyHasOneTask: while a task has a key, it is the answer to each submit with that key, wherever it is: ready, running, waiting for its time or its
// next attempt. However it ends, the key is free then, or after as long as the task said.
func TestAUniqueKeyHasOneTask(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		task := func(kind, key string) *yardv1.NewTask { return &yardv1.NewTask{Type: kind, UniqueKey: key} }
		outcome, first := w.once(task("mail", "a"), task("mail", "b"), task("bill", "c"))
		equal(t, "outcome", outcome, "created created created")
		rejects := task("mail", "b")
		rejects.OnConflict = yardv1.OnConflict_ON_CONFLICT_REJECT
		outcome, again := w.once(task("mail", "d"), task("bill", "a"), rejects)
		equal(t, "outcome", outcome, "created existing rejected")
		equal(t, "the task with key a", again[1], first[0])
		equal(t, "the task with key b", again[2], first[1])
		got := w.get(first[0])
		equal(t, "its key", got.UniqueKey, "a")

		running := w.takeOne("bill")
		outcome, again = w.once(task("bill", "c"))
		equal(t, "while it runs", outcome+" "+again[0], "existing "+running.TaskId)
		w.fail(running, &yardv1.Failure{DelayMs: 60_000, Message: "later"})
		w.reach(running.TaskId, "backoff")
		outcome, again = w.once(task("bill", "c"))
		equal(t, "while it waits for its next attempt", outcome+" "+again[0], "existing "+running.TaskId)
		w.cancel(running.TaskId)
	})
}

// TestAUniqueKeyIsFreeAfterTheEnd: each end, and a time for which the key is kept.
func TestAUniqueKeyIsFreeAfterTheEnd(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		ends := map[string]func(id string){
			"completed": func(string) { w.complete(w.takeOne("completed")) },
			"dead":      func(string) { w.fail(w.takeOne("dead"), &yardv1.Failure{NonRetryable: true}) },
			"cancelled": func(id string) { w.cancel(id) },
			"parked":    func(id string) { w.reach(id, "waiting"); w.cancel(id) },
			"expired":   func(string) {},
		}
		for kind, end := range ends {
			task := &yardv1.NewTask{Type: kind, UniqueKey: kind}
			switch kind {
			case "parked":
				task.DelayMs = 3_600_000
			case "expired":
				task.StartWithinMs = 200
			}
			_, ids := w.once(task)
			end(ids[0])
			w.ended(ids[0])
			task.DelayMs, task.StartWithinMs = 3_600_000, 0
			outcome, next := w.once(task)
			equal(t, kind+": a task with its key", outcome, "created")
			if next[0] == ids[0] {
				t.Errorf("%s: a task was created with the id of one that has ended", kind)
			}
		}
		kept := &yardv1.NewTask{Type: "kept", UniqueKey: "kept", UniqueForMs: 3_600_000}
		_, ids := w.once(kept)
		w.complete(w.takeOne("kept"))
		w.ended(ids[0])
		for range 3 {
			outcome, again := w.once(kept)
			equal(t, "while the key is kept", outcome+" "+again[0], "existing "+ids[0])
		}
		short := &yardv1.NewTask{Type: "short", UniqueKey: "short", UniqueForMs: 1500}
		_, ids = w.once(short)
		w.complete(w.takeOne("short"))
		ended := w.ended(ids[0])
		w.freed(short)
		if free := time.UnixMilli(ended.FinishedAtMs + 1500); time.Now().Before(free) {
			t.Errorf("the key was free %v before its time", time.Until(free))
		}
	})
}

// TestASubmitReplacesWhatHasNotStarted: ready, parked, or unread, a task becomes the new one; given to a worker it stays as it is. The key is kept as the
// new one says.
func TestASubmitReplacesWhatHasNotStarted(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		task := func(key, payload string, delay time.Duration) *yardv1.NewTask {
			return &yardv1.NewTask{
				Type: "mail", UniqueKey: key, OnConflict: yardv1.OnConflict_ON_CONFLICT_REPLACE, DelayMs: delay.Milliseconds(), Payload: &yardv1.Payload{Data: []byte(payload)},
			}
		}
		was := func(outcome, id string, resp string, ids []string) {
			t.Helper()
			equal(t, "outcome", resp+" "+ids[0], outcome+" "+id)
		}
		for kind, delay := range map[string]time.Duration{"ready": 0, "parked": time.Hour} {
			first := task(kind, `"old"`, delay)
			first.Headers, first.Group = map[string]string{"a": "b"}, "acme"
			outcome, ids := w.once(first)
			equal(t, "the first", outcome, "created")
			id := ids[0]
			state := map[string]string{"ready": "ready", "parked": "waiting"}[kind]
			w.reach(id, state)
			next := task(kind, `"new"`, time.Hour)
			next.Priority, next.UniqueForMs = 1, 3_600_000
			resp, ids := w.once(next)
			was("replaced", id, resp, ids)
			w.reach(id, "waiting")
			resp, ids = w.once(task(kind, `"newest"`, 0))
			was("replaced", id, resp, ids)
			got := w.takeOne("mail")
			equal(t, kind+": what runs", got.TaskId+" "+string(got.Payload.Data), id+` "newest"`)
			resp, ids = w.once(task(kind, `"late"`, 0))
			was("existing", id, resp, ids)
			w.fail(got, &yardv1.Failure{DelayMs: 60_000, Message: "later"})
			w.reach(id, "backoff")
			resp, ids = w.once(task(kind, `"late"`, 0))
			was("existing", id, resp, ids)
			found := w.get(id)
			if len(found.Headers) != 0 || found.Group != "" || found.Priority == 1 || found.UniqueForMs != 0 {
				t.Errorf("%s: it is %v", kind, found)
			}
			w.cancel(id)
			w.ended(id)
		}
		_, ids := w.once(task("type", "1", time.Hour))
		other := task("type", "1", time.Hour)
		other.Type = "bill"
		resp, again := w.once(other)
		was("existing", ids[0], resp, again)
		w.cancel(ids[0])
	})
}

// TestUniqueTasksRunOnce: many submit the same 500 tasks at once, due now, later, or taken by a worker that is lost first; each runs once.
func TestUniqueTasksRunOnce(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		const n = 500
		client, err := yard.NewClient(w.nc, w.domain, yard.WithTimeout(time.Minute)) // four that want the same keys get in each other's way
		testkit.NoError(t, err)
		for _, kind := range []string{"now", "later", "stuck"} {
			tasks := make([]yard.Task, n)
			for i := range tasks {
				tasks[i] = yard.Task{Type: kind, Tasklist: list, Payload: i, Unique: &yard.Unique{Key: fmt.Sprint(kind, i), For: time.Hour}}
				switch kind {
				case "later":
					tasks[i].Delay = 500 * time.Millisecond
				case "stuck":
					tasks[i].HeartbeatTimeout = 3 * time.Second // no worker that lives is this slow
				}
			}
			var all sync.WaitGroup
			var mu sync.Mutex
			names := map[string]bool{}
			created := 0
			for range 4 {
				all.Go(func() {
					got, err := client.SubmitEach(w.soon(), tasks)
					testkit.Check(t, err)
					mu.Lock()
					defer mu.Unlock()
					for _, s := range got {
						names[s.ID] = true
						if s.Outcome == yard.OutcomeCreated {
							created++
						}
					}
				})
			}
			all.Wait()
			equal(t, kind+": tasks named", len(names), n)
			equal(t, kind+": tasks created", created, n)
			if kind == "stuck" {
				w.some(100, kind) // by a worker that is never heard of again
			}
			var runs [n]atomic.Int32
			stop := w.work(list, func(worker *yard.Worker) {
				yard.Handle(worker, kind, func(_ context.Context, i int) (any, error) {
					runs[i].Add(1)
					return nil, nil
				})
			})
			for id := range names {
				w.ended(id)
			}
			stop()
			for i := range runs {
				testkit.Equal(t, fmt.Sprintf("%s: task %d ran", kind, i), runs[i].Load(), 1)
			}
		}
		w.examined()
	})
}

// TestUniqueKeysThatAreWrong: what is refused stores nothing.
func TestUniqueKeysThatAreWrong(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for path, tasks := range map[string][]*yardv1.NewTask{
			"/tasks/0/unique_key":    {{Type: "x", UniqueKey: strings.Repeat("k", 257)}},
			"/tasks/1/unique_key":    {{Type: "x", UniqueKey: "k"}, {Type: "x"}},
			"/tasks/2/unique_key":    {{Type: "x", UniqueKey: "k"}, {Type: "x", UniqueKey: "l"}, {Type: "x", UniqueKey: "k"}},
			"/tasks/3/unique_key":    {{Type: "x", OrderKey: "k"}, {Type: "x", OrderKey: "k"}, {Type: "x", OrderKey: "k"}, {Type: "x", OrderKey: "l", UniqueKey: "u"}},
			"/tasks/0/on_conflict":   {{Type: "x", OnConflict: yardv1.OnConflict_ON_CONFLICT_REJECT}},
			"/tasks/0/unique_for_ms": {{Type: "x", UniqueForMs: 1}},
			"/tasks/1/unique_for_ms": {{Type: "x", UniqueKey: "k"}, {Type: "x", UniqueKey: "l", UniqueForMs: -1}},
		} {
			_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: tasks})
			refusedAt(t, err, fault.InvalidArgument, path)
		}
		outcome, ids := w.once(&yardv1.NewTask{Type: "x", UniqueKey: "k"})
		equal(t, "outcome", outcome, "created")
		_, err := w.client.Submit(w.soon(), yard.Task{Type: "x", Tasklist: list, Unique: &yard.Unique{Key: "k", Reject: true}})
		refused(t, err, fault.AlreadyExists)
		id, err := w.client.Submit(w.soon(), yard.Task{Type: "x", Tasklist: list, Unique: &yard.Unique{Key: "k"}})
		if err != nil || id != ids[0] {
			t.Errorf("got %s, %v, want %s", id, err, ids[0])
		}
	})
}
