package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// ran is which workers ran the attempts of tasks, in order, such as "first/1".
type ran struct {
	mu  sync.Mutex
	all map[string][]string
}

func (r *ran) of(id string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all[id])
}

// failing registers a handler of a type that fails the first attempts of each task, so many of them.
func (r *ran) failing(taskType, worker string, times int) func(*yard.Worker) {
	return func(k *yard.Worker) {
		k.HandleFunc(taskType, func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.all == nil {
				r.all = map[string][]string{}
			}
			r.all[a.TaskID] = append(r.all[a.TaskID], fmt.Sprintf("%s/%d", worker, a.Number))
			if len(r.all[a.TaskID]) <= times {
				return yard.Payload{}, errors.New("not yet")
			}
			return yard.Payload{}, nil
		})
	}
}

// inPlace is a policy by which workers may try again in place for a minute, after so long.
func inPlace(wait time.Duration) *yardv1.RetryPolicy {
	ms := wait.Milliseconds()
	return &yardv1.RetryPolicy{PinnedForMs: 60_000, InitialIntervalMs: ms, MaxIntervalMs: ms, Jitter: yardv1.Jitter_JITTER_NONE, MaxAttempts: 4}
}

// untilKept waits until the last event of a task says that its worker keeps the attempt.
func (w *world) untilKept(id string) {
	w.t.Helper()
	w.eventually(func() error {
		task := w.get(id)
		n := len(task.Events)
		if n == 0 || !task.Events[n-1].Kept {
			return fmt.Errorf("%s is %s after %s", id, stateOf(task), eventsOf(task))
		}
		return nil
	})
}

// TestTheSameWorkerTriesAgainInPlace: of two workers the one that has failed runs each task to its end, as attempts of their own, in one grant. The limit of
// one attempt holds, and its slot stays with the attempt that is kept. All of that takes longer than an attempt may, and no try does.
func TestTheSameWorkerTriesAgainInPlace(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const n, wait = 3, 600
		w.putType(yard.TaskType{Name: "load", MaxConcurrency: 1})
		var r ran
		for _, name := range []string{"first", "second"} {
			w.work(list, r.failing("load", name, 2), yard.WithIdentity(name), yard.WithConcurrency(n))
		}
		var tasks []*yardv1.NewTask
		for range n {
			tasks = append(tasks, &yardv1.NewTask{Type: "load", StartToCloseMs: 1000, Retry: inPlace(wait * time.Millisecond)})
		}
		type span struct{ from, to int64 }
		var held []span
		for _, id := range w.submit(tasks...) {
			task := w.ended(id)
			want(t, task, "completed", "submitted started failed failed completed")
			attempts := r.of(id)
			number := int(task.Grants)
			if worker := past(task)[1].Worker; !slices.Equal(attempts, []string{fmt.Sprint(worker, "/", number), fmt.Sprint(worker, "/", number+1), fmt.Sprint(worker, "/", number+2)}) {
				t.Errorf("%s, which %s was given, ran as %v", id, worker, attempts)
			}
			equal(t, "failures", task.Failures, 2)
			events := past(task)
			for _, e := range events[2:4] {
				if !e.Kept || e.DueAtMs != e.AtMs+wait || e.Grant != events[1].Grant {
					t.Errorf("its history says %v", e)
				}
			}
			held = append(held, span{events[1].AtMs, events[4].AtMs})
		}
		slices.SortFunc(held, func(a, b span) int { return int(a.from - b.from) })
		for i := range held[1:] {
			if held[i+1].from < held[i].to {
				t.Errorf("two attempts hold the one slot: %v", held)
			}
		}
	})
}

// TestAWorkerThatDiesInTheWaitLosesItsAttempt: it is cut off, another one runs the task at once, and no failure more is counted.
func TestAWorkerThatDiesInTheWaitLosesItsAttempt(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var r ran
		host := newCable(t)
		w.overCable(host, r.failing("load", "cut-off", 9), yard.WithSignsOfLife(500*time.Millisecond))
		id := w.submitOne(&yardv1.NewTask{Type: "load", Retry: inPlace(50 * time.Second)})
		w.untilKept(id)
		w.eventually(func() error {
			if one, found := w.worker("cut-off"); !found || one.AttemptsCount != 1 {
				return fmt.Errorf("it runs %d attempts", one.AttemptsCount)
			}
			return nil
		})
		close(host.cut)
		w.work(list, r.failing("load", "another", 0), yard.WithIdentity("another"))
		task := w.ended(id)
		want(t, task, "completed", "submitted started failed lost started completed")
		equal(t, "failures", task.Failures, 1)
		equal(t, "attempts", fmt.Sprint(r.of(id)), "[cut-off/1 another/3]")
	})
}

// TestADrainedWorkerHandsBackWhatItKeeps: another one runs the task, and no failure more is counted. So does one that ends.
func TestADrainedWorkerHandsBackWhatItKeeps(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var r ran
		stop := w.work(list, r.failing("load", "first", 9), yard.WithIdentity("first"), yard.WithSignsOfLife(500*time.Millisecond), yard.WithPollWait(time.Minute))
		submit := func() string {
			id := w.submitOne(&yardv1.NewTask{Type: "load", Retry: inPlace(50 * time.Second)})
			w.untilKept(id)
			return id
		}
		leaves := submit()
		var first yard.LiveWorker
		w.eventually(func() error {
			found := false
			if first, found = w.worker("first"); !found {
				return errNothing
			}
			return nil
		})
		if _, err := w.client.DrainWorker(w.soon(), first.ID, yard.WorkerDrain{Reason: "its disk fails"}); err != nil {
			t.Fatal(err)
		}
		w.reach(leaves, "ready")
		if _, err := w.client.ResumeWorker(w.soon(), first.ID); err != nil {
			t.Fatal(err)
		}
		w.untilKept(leaves) // it is given the task again
		ends := submit()
		began := time.Now()
		stop()
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v to end", took)
		}
		w.work(list, r.failing("load", "second", 0), yard.WithIdentity("second"))
		for id, failures := range map[string]int32{leaves: 2, ends: 1} {
			task := w.ended(id)
			equal(t, "failures", task.Failures, failures)
			if slices.ContainsFunc(task.Events, func(e *yardv1.TaskEvent) bool { return kindOf(e) == "lost" || kindOf(e) == "timed_out" }) {
				t.Errorf("%s was lost: %s", id, eventsOf(task))
			}
			equal(t, "worker", task.Events[len(task.Events)-1].Worker, "second")
		}
	})
}

// TestAnAttemptIsNotKeptPastARate: each try in place would be a start without one.
func TestAnAttemptIsNotKeptPastARate(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "x", Rate: yard.Rate{Tasks: 1, Per: 24 * time.Hour, Burst: 20}})
		w.eventually(func() error { // a shard may hear of the rate up to a second later
			id := w.submitOne(&yardv1.NewTask{Type: "x", Retry: inPlace(time.Hour)})
			p := w.takeOne("x")
			v := w.outcome("tasks.fail", &yardv1.FailRequest{Tasks: []*yardv1.Failure{{TaskId: p.TaskId, Token: p.Token, Keep: true, Failures: p.Failures, DelayMs: 30_000}}}).Verdicts[0]
			task := w.get(id)
			w.cancel(id)
			switch {
			case v.Kept != (p.PinnedForMs > 0):
				t.Fatalf("offered for %d ms, kept: %v", p.PinnedForMs, v)
			case v.Kept:
				return fmt.Errorf("%s is kept: %v", id, v)
			}
			want(t, task, "backoff", "submitted started failed parked")
			return nil
		})
	})
}

// TestI4_AFailureAfterWhichAnAttemptIsKeptIsCountedOnce: repeats get the same verdict, the token goes on to hold, also across another owner of the partition,
// and it is what ends the attempt.
func TestI4_AFailureAfterWhichAnAttemptIsKeptIsCountedOnce(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "restarts a system of its own")
	for kind := range shared.of {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			cfg := stack.Config{Tables: kind, DataDir: t.TempDir()}
			w := enter(t, own(t, cfg))
			id := w.submitOne(&yardv1.NewTask{Type: "load", Retry: inPlace(20 * time.Second), StartToCloseMs: 60_000, HeartbeatTimeoutMs: 30_000})
			p := w.takeOne("load")
			equal(t, "offered", p.PinnedForMs, 60_000)
			fail := func(known int32) *yardv1.Verdict {
				return w.outcome("tasks.fail", &yardv1.FailRequest{Tasks: []*yardv1.Failure{{TaskId: id, Token: p.Token, Message: "no", Keep: true, Failures: known}}}).Verdicts[0]
			}
			kept := func(v *yardv1.Verdict, failures int32) {
				t.Helper()
				if v.Code != "OK" || !v.Kept || v.Failures != failures || v.RetryInMs > 20_000 || v.LeaseMs-v.RetryInMs > 30_000 || v.TimeoutMs-v.RetryInMs > 60_000 || v.TimeoutMs < 45_000 {
					t.Errorf("the verdict is %v", v)
				}
			}
			kept(fail(p.Failures), 1)
			kept(fail(p.Failures), 1)
			if err := closeStack(w.stack); err != nil {
				t.Fatalf("the stack did not end well: %v", err)
			}
			w = join(t, own(t, cfg), w.domain)
			w.eventually(func() error {
				_, err := w.raw("types.list", "{}")
				return err
			})
			kept(fail(p.Failures), 1)
			if v := w.beat(p); v.Code != "OK" || v.LeaseMs < 15_000 {
				t.Errorf("a heartbeat gets %v", v)
			}
			kept(fail(1), 2)
			equal(t, "state", stateOf(w.get(id)), "running")
			equal(t, "completed", w.complete(p), "OK")
			task := w.ended(id)
			want(t, task, "completed", "submitted started failed failed completed")
			equal(t, "failures", task.Failures, 2)
		})
	}
}
