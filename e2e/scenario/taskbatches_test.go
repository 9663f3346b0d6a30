package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// batch makes one whose callback is of the type "callback".
func (w *world) batch(id string) *yard.Batch {
	w.t.Helper()
	b, err := w.client.NewBatch(w.soon(), id, yard.BatchOptions{Callback: &yard.Task{Type: "callback", Tasklist: list, Payload: id, Headers: map[string]string{"mine": "yes"}}})
	testkit.NoError(w.t, err)
	return b
}

// info is what is known of a batch now.
func (w *world) info(b *yard.Batch) *yard.BatchInfo {
	w.t.Helper()
	info, err := b.Info(w.soon())
	testkit.NoError(w.t, err)
	return info
}

// counts waits until a batch is in a state with these counts: tasks, active, completed, dead, cancelled, expired.
func (w *world) counts(b *yard.Batch, state yard.BatchState, want ...int64) *yard.BatchInfo {
	w.t.Helper()
	var info *yard.BatchInfo
	w.eventually(func() error {
		info = w.info(b)
		got := []int64{info.Tasks, info.Active, info.Completed, info.Dead, info.Cancelled, info.Expired}
		if info.State != state || fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("batch %s is %s with %v, want %s with %v", b.ID, info.State, got, state, want)
		}
		return nil
	})
	return info
}

func (w *world) closed(b *yard.Batch) {
	w.t.Helper()
	testkit.NoError(w.t, testkit.Err(b.Close(w.soon())))
}

// calledBack takes the callback of a batch and checks what it says: tasks, completed, dead, cancelled, expired.
func (w *world) calledBack(b *yard.Batch, want ...int64) {
	w.t.Helper()
	p := w.takeOne("callback")
	for i, name := range []string{"tasks", "completed", "dead", "cancelled", "expired"} {
		equal(w.t, "the callback's header yard-batch-"+name, p.Headers["yard-batch-"+name], fmt.Sprint(want[i]))
	}
	equal(w.t, "the callback's batch", p.Headers["yard-batch-id"], b.ID)
	equal(w.t, "the callback's own header", p.Headers["mine"], "yes")
	equal(w.t, "the callback's id", w.info(b).CallbackID, p.TaskId)
	equal(w.t, "the callback", w.complete(p), "OK")
}

func member(b *yard.Batch, t *yardv1.NewTask) *yardv1.NewTask {
	t.BatchId = b.ID
	return t
}

// TestABatchCountsItsTasks however they end, and calls back once they all have.
func TestABatchCountsItsTasks(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		b := w.batch("mixed")
		w.counts(b, yard.BatchOpen, 0, 0, 0, 0, 0, 0)
		w.submit(member(b, &yardv1.NewTask{Type: "done"}), member(b, &yardv1.NewTask{Type: "done"}))
		dead := w.submitOne(member(b, &yardv1.NewTask{Type: "dead", OrderKey: "a"}))
		gone := w.submitOne(member(b, &yardv1.NewTask{Type: "gone", UniqueKey: "u", DelayMs: 3_600_000}))
		w.submitOne(member(b, &yardv1.NewTask{Type: "late", StartWithinMs: 100}))
		w.submitOne(&yardv1.NewTask{Type: "other"})
		again := must[yardv1.SubmitResponse](w, "tasks.submit", &yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{member(b, &yardv1.NewTask{Type: "gone", UniqueKey: "u"})}})
		equal(t, "its key is taken", again.Results[0].Outcome.Name(), "existing")
		equal(t, "a member's batch", w.get(dead).BatchId, "mixed")
		equal(t, "a waiting member's batch", w.reach(gone, "waiting").BatchId, "mixed")
		w.counts(b, yard.BatchOpen, 5, 4, 0, 0, 0, 1)
		for range 2 {
			equal(t, "complete", w.complete(w.takeOne("done")), "OK")
		}
		w.counts(b, yard.BatchOpen, 5, 2, 2, 0, 0, 1)
		equal(t, "fail", w.fail(w.takeOne("dead"), &yardv1.Failure{Message: "no", NonRetryable: true}), "OK")
		w.counts(b, yard.BatchOpen, 5, 1, 2, 1, 0, 1)
		w.closed(b)
		w.counts(b, yard.BatchClosed, 5, 1, 2, 1, 0, 1)
		_, err := call[yardv1.SubmitResponse](w, "tasks.submit", &yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{member(b, &yardv1.NewTask{Type: "more"})}})
		equal(t, "a member behind the end", fault.CodeOf(err), fault.FailedPrecondition)
		w.listed(yard.Filter{Batch: "mixed", States: []yard.State{"waiting"}}, gone)
		equal(t, "cancel", w.cancel(gone).Code, "OK")
		info, err := b.Wait(w.soon())
		if err != nil || info.State != yard.BatchCompleted {
			t.Fatalf("%v: %+v", err, info)
		}
		w.counts(b, yard.BatchCompleted, 5, 0, 2, 1, 1, 1)
		w.calledBack(b, 5, 2, 1, 1, 1)
		_, err = w.client.NewBatch(w.soon(), "mixed", yard.BatchOptions{})
		equal(t, "another batch of the name", fault.CodeOf(err), fault.AlreadyExists)
		w.batch("mixed") // the same again
		w.examined()
	})
}

// TestABatchWithoutTasks completes when it is closed.
func TestABatchWithoutTasks(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		b := w.batch("empty")
		w.closed(b)
		w.closed(b)
		w.counts(b, yard.BatchCompleted, 0, 0, 0, 0, 0, 0)
		w.calledBack(b, 0, 0, 0, 0, 0)
		silent, err := w.client.NewBatch(w.soon(), "silent", yard.BatchOptions{})
		testkit.NoError(t, err)
		w.closed(silent)
		equal(t, "its callback", w.counts(silent, yard.BatchCompleted, 0, 0, 0, 0, 0, 0).CallbackID, "")
		_, err = call[yardv1.SubmitResponse](w, "tasks.submit", &yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "a", BatchId: "unknown"}}})
		equal(t, "a member of no batch", fault.CodeOf(err), fault.NotFound)
		var all []string
		for info, err := range w.client.Batches(w.soon(), yard.BatchCompleted) {
			testkit.NoError(t, err)
			all = append(all, info.ID)
		}
		equal(t, "batches", len(all), 2)
	})
}

// TestARedrivenMember counts as dead until it has ended again.
func TestARedrivenMember(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		b := w.batch("redriven")
		id := w.submitOne(member(b, &yardv1.NewTask{Type: "dies"}))
		stays := w.submitOne(member(b, &yardv1.NewTask{Type: "stays"}))
		die := func() {
			t.Helper()
			equal(t, "fail", w.fail(w.takeOne("dies"), &yardv1.Failure{Message: "no", NonRetryable: true}), "OK")
			w.deadLetter(list, id)
		}
		die()
		w.counts(b, yard.BatchOpen, 2, 1, 0, 1, 0, 0)
		w.closed(b)
		for range 2 {
			equal(t, "redriven", w.redrive(&yardv1.RedriveRequest{TaskIds: []string{id}}).Redriven, int64(1))
			w.reach(id, "ready")
			w.counts(b, yard.BatchClosed, 2, 1, 0, 1, 0, 0)
			die()
		}
		equal(t, "redriven", w.redrive(&yardv1.RedriveRequest{TaskIds: []string{id}}).Redriven, int64(1))
		equal(t, "complete", w.complete(w.takeOne("dies")), "OK")
		w.counts(b, yard.BatchClosed, 2, 1, 1, 0, 0, 0)
		equal(t, "cancel", w.cancel(stays).Code, "OK")
		w.counts(b, yard.BatchCompleted, 2, 0, 1, 0, 1, 0)
		w.calledBack(b, 2, 1, 0, 1, 0)
	})
}

// TestTheRestOfABatchIsCancelled: what waits, is ready, or waits for its next attempt; and what runs, if that is asked for.
func TestTheRestOfABatchIsCancelled(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		b := w.batch("cancelled")
		tasks := []yard.Task{}
		for i := range 60 {
			task := yard.Task{Type: "never", Tasklist: list}
			if i%2 == 0 {
				task.Delay = time.Hour
			}
			tasks = append(tasks, task)
		}
		testkit.NoError(t, testkit.Err(b.Add(w.soon(), tasks)))
		w.submitOne(member(b, &yardv1.NewTask{Type: "runs"}))
		other := w.submitOne(&yardv1.NewTask{Type: "other"})
		running := w.takeOne("runs")
		done, err := b.Cancel(w.soon(), yard.PurgeOptions{Rate: 100, Reason: "wrong file", By: "ann"})
		testkit.NoError(t, err)
		equal(t, "cancelled", done.Cancelled, int64(60))
		info := w.counts(b, yard.BatchClosed, 61, 1, 0, 0, 60, 0)
		equal(t, "it was cancelled", info.CancelRequested, true)
		equal(t, "another task", w.get(other).State.Name(), "ready")
		equal(t, "complete", w.complete(running), "OK")
		w.counts(b, yard.BatchCompleted, 61, 0, 1, 0, 60, 0)
		w.calledBack(b, 61, 1, 0, 60, 0)
	})
}

// TestABatchIsRepeated: requests that are sent again count once.
func TestABatchIsRepeated(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		b := w.batch("repeated")
		const clients = 8
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for range 5 {
					for _, unique := range []string{"", "same"} {
						req := &yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "once", BatchId: b.ID, UniqueKey: unique}}}
						w.submittedAgain(req)
					}
				}
			})
		}
		all.Wait()
		w.counts(b, yard.BatchOpen, clients*5+1, clients*5+1, 0, 0, 0, 0)
		w.closed(b)
		for range clients*5 + 1 {
			equal(t, "complete", w.complete(w.takeOne("once")), "OK")
		}
		w.counts(b, yard.BatchCompleted, clients*5+1, 0, clients*5+1, 0, 0, 0)
		w.calledBack(b, clients*5+1, clients*5+1, 0, 0, 0)
	})
}

// submittedAgain submits the same request three times, the last two as repeats.
func (w *world) submittedAgain(req *yardv1.SubmitRequest) {
	req.RequestId = ids.NewRequestID(time.Now()).String()
	for req.Tries = 1; req.Tries <= 3; req.Tries++ {
		w.eventually(func() error {
			_, err := call[yardv1.SubmitResponse](w, "tasks.submit", req)
			return err
		})
	}
}

// TestABatchOfThousands: over all partitions, with tasks that fail, are delayed, die and are cancelled.
func TestABatchOfThousands(t *testing.T) {
	testkit.Slow(t, "floods the system for half a minute and more")
	everywhere(t, func(t *testing.T, w *world) {
		const requests, each = 5, 1000
		b := w.batch("thousands")
		var mu sync.Mutex
		failed := map[int]bool{}
		callbacks := 0
		stop := w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "step", func(_ context.Context, n int) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case n%50 == 1:
					return nil, yard.NonRetryable(errors.New("for good"))
				case n%50 == 2 && !failed[n]:
					failed[n] = true
					return nil, errors.New("once")
				}
				return nil, nil
			})
			yard.Handle(worker, "callback", func(context.Context, string) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				callbacks++
				return nil, nil
			})
		})
		var gone []string
		for r := range requests {
			var tasks []yard.Task
			for i := range each {
				n := r*each + i
				task := yard.Task{Type: "step", Tasklist: list, Payload: n, Retry: &yard.RetryPolicy{MaxAttempts: 3, InitialInterval: 20 * time.Millisecond}}
				switch n % 50 {
				case 3:
					task.Delay = time.Hour
				case 4:
					task.Delay = time.Second
				}
				tasks = append(tasks, task)
			}
			ids, err := b.Add(w.soon(), tasks)
			testkit.NoError(t, err)
			for i, id := range ids {
				if (r*each+i)%50 == 3 {
					gone = append(gone, id)
				}
			}
		}
		w.closed(b)
		testkit.NoError(t, w.client.CancelFor(w.soon(), "too late", gone...))
		const some = requests * each / 50
		w.counts(b, yard.BatchCompleted, requests*each, 0, requests*each-2*some, some, some, 0)
		w.eventually(func() error {
			if info := w.info(b); w.get(info.CallbackID).State.Name() != "completed" {
				return errors.New("the callback has not ended")
			}
			return nil
		})
		stop()
		equal(t, "callbacks", callbacks, 1)
	})
}
