package scenario_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// submittedTwice hands in n tasks alike, each in a request of its own that is sent twice, by ten clients in random order. It returns
// the tasks' ids: both answers to a request are to name the same one.
func (w *world) submittedTwice(n int, task func() *yardv1.NewTask) []string {
	w.t.Helper()
	const clients, times = 10, 2
	random := testkit.Seed(w.t)
	requests := make([]func() string, n)
	for i := range requests {
		// Made by who sends it first: tasks are as old as the id of their request.
		requests[i] = sync.OnceValue(func() string { return ids.NewRequestID(time.Now()).String() })
	}
	answers := make([]string, n*times)
	var all sync.WaitGroup
	todo := make(chan int, n*times)
	for _, i := range random.Perm(n * times) {
		todo <- i
	}
	close(todo)
	for range clients {
		all.Go(func() {
			for i := range todo {
				id, err := w.sendOnce(&yardv1.SubmitRequest{RequestId: requests[i%n](), Tasklist: list, Tasks: []*yardv1.NewTask{task()}})
				if err != nil {
					w.t.Errorf("request %s: %v", requests[i%n](), err)
				}
				answers[i] = id
			}
		})
	}
	all.Wait()
	seen, repeats := map[string]bool{}, 0
	for i := range n {
		seen[answers[i]] = true
		if answers[i] != answers[n+i] {
			w.t.Errorf("request %s made tasks %s and %s", requests[i](), answers[i], answers[n+i])
			continue
		}
		repeats++
	}
	equal(w.t, "tasks", len(seen), n)
	equal(w.t, "repeats that made no task", repeats, n)
	if w.t.Failed() {
		w.t.FailNow()
	}
	return answers[:n]
}

// sendOnce submits one task and sends its request again while no one knows what became of it.
func (w *world) sendOnce(req *yardv1.SubmitRequest) (id string, err error) {
	for end := time.Now().Add(within); time.Now().Before(end); {
		var resp *yardv1.SubmitResponse
		if resp, err = call[yardv1.SubmitResponse](w, "tasks.submit", req); err == nil {
			return resp.TaskIDs()[0], nil
		} else if fault.CodeOf(err) != fault.Unknown {
			break
		}
	}
	return "", err
}

// TestI4_EveryTaskRunsOnceThoughItIsSubmittedTwice: at once, when its time comes, and after a worker that took all of them fell silent.
// What runs is what the log granted, and each task completes once. SEEDS 2.3.
func TestI4_EveryTaskRunsOnceThoughItIsSubmittedTwice(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	const delay = 2 * time.Second
	variants := map[string]struct {
		task *yardv1.NewTask
		// stuck: a worker takes all of them first, and is never heard of again.
		stuck bool
	}{
		"immediate": {&yardv1.NewTask{Type: "x"}, false},
		"scheduled": {&yardv1.NewTask{Type: "x", DelayMs: delay.Milliseconds()}, false},
		"stuck":     {&yardv1.NewTask{Type: "x", HeartbeatTimeoutMs: 2000}, true},
	}
	for name, v := range variants {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w *world) {
				const tasks, concurrency = 500, 100
				d := newDeliveries()
				work := func() (stop func()) {
					return w.work(list, func(k *yard.Worker) {
						yard.Handle(k, "x", func(ctx context.Context, _ struct{}) (struct{}, error) {
							d.note(yard.Info(ctx), time.Duration(v.task.DelayMs)*time.Millisecond)
							return struct{}{}, nil
						})
					}, yard.WithConcurrency(concurrency))
				}
				if !v.stuck {
					defer work()()
				}
				submitted := w.submittedTwice(tasks, func() *yardv1.NewTask { return v.task.CloneVT() })
				silent := map[string]int{}
				for v.stuck && len(silent) < tasks {
					for _, p := range w.some(tasks) {
						silent[p.TaskId]++
					}
				}
				if v.stuck {
					defer work()()
				}
				for _, id := range submitted {
					task, granted, completed := w.ended(id), 0, 0
					for _, e := range past(task) {
						switch kindOf(e) {
						case "started":
							granted++
						case "completed":
							completed++
						}
					}
					// On a busy machine an attempt may end by its silence; then the log has granted one more.
					if runs := d.of(id); runs < 1 || runs > granted-silent[id] || completed != 1 {
						t.Errorf("task %s ran %d times, beside %d silent attempts, after %q", id, runs, silent[id], eventsOf(task))
					}
				}
				w.emptied()
				d.print(t)
			})
		})
	}
}

// TestTheLargestPayloadComesBackAsItWas: through the log, to the worker, as a result, and from the archive. A byte more is refused, and
// nothing of its request is stored. SEEDS 2.3.
func TestTheLargestPayloadComesBackAsItWas(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const most, tasks = 256 << 10, 8
		d := newDeliveries()
		payload := make([]byte, most)
		for i := range payload {
			payload[i] = byte(rand.Uint32())
		}
		large := yard.Task{Type: "x", Tasklist: list, Payload: payload}
		small := yard.Task{Type: "x", Tasklist: list, Payload: []byte{1}}
		over := yard.Task{Type: "x", Tasklist: list, Payload: append([]byte{0}, payload...)}
		_, err := w.client.SubmitMany(w.soon(), []yard.Task{small, over})
		refusedAt(t, err, fault.InvalidArgument, "/tasks/1/payload")
		defer w.work(list, func(k *yard.Worker) {
			k.HandleFunc("x", func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
				d.note(*a, 0)
				if string(a.Payload.Data) != string(payload) {
					return yard.Payload{}, yard.NonRetryable(fmt.Errorf("the payload of %d bytes is not that which was submitted", len(a.Payload.Data)))
				}
				return a.Payload, nil
			})
		})()
		for range tasks {
			id, err := w.client.Submit(w.soon(), large)
			testkit.NoError(t, err)
			result, err := w.client.Wait(w.soon(), id)
			if err != nil || string(result.Payload.Data) != string(payload) {
				t.Fatalf("not the payload came back: %v", err)
			}
			if kept, err := w.client.Get(w.soon(), id); err != nil || string(kept.Payload.Data) != string(payload) || string(kept.Result.Data) != string(payload) {
				t.Fatalf("a payload of %d bytes and a result of %d are kept, %v", len(kept.Payload.Data), len(kept.Result.Data), err)
			}
		}
		equal(t, "tasks that ran", len(d.waited), tasks)
		d.print(t)
	})
}
