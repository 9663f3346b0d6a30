package scenario_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// dead submits n tasks of a type that use up their one attempt, and waits for their letters.
func (w *world) dead(n int, typ, errType string) []string {
	w.t.Helper()
	tasks := many(n, &yardv1.NewTask{Type: typ, Payload: jsonPayload(`{"a":1}`), Retry: &yardv1.RetryPolicy{MaxAttempts: 1}})
	all := w.submit(tasks...)
	for _, p := range w.take(n, typ) {
		equal(w.t, "verdict", w.fail(p, &yardv1.Failure{Message: "no", ErrorType: errType}), "OK")
	}
	for _, id := range all {
		w.deadLetter(list, id)
	}
	return all
}

// redrive brings letters back until the log has decided about all.
func (w *world) redrive(req *yardv1.RedriveRequest) *yardv1.RedriveResponse {
	w.t.Helper()
	if req.RequestId == "" {
		req.RequestId = ids.NewRequestID(time.Now()).String()
	}
	var resp *yardv1.RedriveResponse
	w.eventually(func() error {
		resp = must[yardv1.RedriveResponse](w, "deadletters.redrive", req)
		if resp.Undecided > 0 {
			return fmt.Errorf("undecided: %v", resp)
		}
		return nil
	})
	return resp
}

func (w *world) lettersOf(f yard.DeadLetterFilter) (all []string) {
	w.t.Helper()
	for task, err := range w.client.ListDeadLetters(w.soon(), f) {
		testkit.NoError(w.t, err)
		all = append(all, task.ID)
	}
	return all
}

// noLetters waits until none is left: a letter is deleted when its task is stored elsewhere, which may have run by then.
func (w *world) noLetters() {
	w.t.Helper()
	w.eventually(func() error {
		if all := w.lettersOf(yard.DeadLetterFilter{}); len(all) > 0 {
			return fmt.Errorf("letters of %v", all)
		}
		return nil
	})
}

// TestRedrive: the task comes back as itself, with its history, a new policy, and failures that count from 0; dead again it is a letter again.
func TestRedrive(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.dead(1, "x", "network")[0]
		equal(t, "listed", fmt.Sprint(w.lettersOf(yard.DeadLetterFilter{ErrorType: "network"})), fmt.Sprint([]string{id}))
		letter, err := w.client.GetDeadLetter(w.soon(), id)
		if err != nil || string(letter.Payload.Data) != `{"a":1}` {
			t.Fatalf("the letter is %v: %v", letter, err)
		}
		req := &yardv1.RedriveRequest{TaskIds: []string{id}, Retry: &yardv1.RetryPolicy{MaxAttempts: 2, InitialIntervalMs: 100}, By: "ann", Reason: "it is up", RequestId: ids.NewRequestID(time.Now()).String()}
		for range 2 { // a repeat is answered the same
			equal(t, "verdict", w.redrive(req).Verdicts[0].Code, "OK")
		}
		p := w.takeOne("x")
		equal(t, "task", p.TaskId, id)
		equal(t, "grant", w.grant(p), 2)
		equal(t, "verdict", w.fail(p, &yardv1.Failure{Message: "still", ErrorType: "network"}), "OK") // the first of two
		w.noLetters()
		p = w.takeOne("x")
		equal(t, "verdict", w.redrive(&yardv1.RedriveRequest{TaskIds: []string{id}}).Verdicts[0].Code, "FAILED_PRECONDITION")
		equal(t, "verdict", w.fail(p, &yardv1.Failure{Message: "for good", ErrorType: "network"}), "OK")
		task := w.ended(id)
		want(t, task, "dead", "submitted started failed dead redriven parked fired started failed started failed dead")
		equal(t, "reason", past(task)[4].Message, "redriven by ann: it is up")
		equal(t, "counts", fmt.Sprint(task.Failures, task.Redrives), "2 1")
		w.eventually(func() error {
			if all := w.lettersOf(yard.DeadLetterFilter{}); !slices.Equal(all, []string{id}) {
				return fmt.Errorf("letters of %v", all)
			}
			return nil
		})
		w.eventually(func() error {
			if w.redrive(&yardv1.RedriveRequest{TaskIds: []string{id}}).Redriven == 0 {
				return errNothing
			}
			return nil
		})
		equal(t, "verdict", w.complete(w.takeOne("x")), "OK")
		done := w.ended(id)
		equal(t, "state", stateOf(done), "completed")
		equal(t, "redrives", done.Redrives, 2)
		w.noLetters()
		w.nothing(list)
	})
}

// TestRedriveToAnotherTasklist: the task runs there, and if it dies again, its letter is of that tasklist.
func TestRedriveToAnotherTasklist(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const slow = "slow"
		all := w.dead(2, "x", "network")
		did, err := w.client.Redrive(w.soon(), yard.RedriveOptions{TaskIDs: all[:1], Tasklist: slow, Retry: &yard.RetryPolicy{MaxAttempts: 1}})
		testkit.NoError(t, err)
		equal(t, "redriven", did.Redriven, 1)
		var got []*yardv1.PolledTask
		w.eventually(func() (err error) {
			if got, err = w.poll(&yardv1.PollRequest{Tasklist: slow, MaxTasks: 10, WaitMs: 500}); err == nil && len(got) == 0 {
				err = errNothing
			}
			return err
		})
		equal(t, "task", got[0].TaskId, all[0])
		w.nothing(list)
		equal(t, "verdict", w.fail(got[0], &yardv1.Failure{Message: "still", ErrorType: "network"}), "OK")
		w.deadLetter(slow, all[0])
		w.eventually(func() error {
			if of := w.lettersOf(yard.DeadLetterFilter{Tasklist: slow}); !slices.Equal(of, all[:1]) {
				return fmt.Errorf("letters of %v", of)
			}
			if of := w.lettersOf(yard.DeadLetterFilter{}); len(of) != 2 {
				return fmt.Errorf("letters of %v", of)
			}
			return nil
		})
		equal(t, "its tasklist", w.ended(all[0]).Tasklist, slow)
	})
}

// TestRedriveOnce: many operators redrive the same letters at once, and each task runs once.
func TestRedriveOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const tasks, operators = 20, 5
		all := w.dead(tasks, "x", "network")
		var mu sync.Mutex
		redriven := int64(0)
		var busy sync.WaitGroup
		for range operators {
			busy.Go(func() {
				did, err := w.client.Redrive(w.soon(), yard.RedriveOptions{TaskIDs: all, Rate: 10_000})
				mu.Lock()
				defer mu.Unlock()
				redriven += did.Redriven
				testkit.Check(t, err)
			})
		}
		busy.Wait()
		equal(t, "redriven", redriven, tasks)
		equal(t, "verdicts", w.complete(w.take(tasks, "x")...) != "", true)
		for _, id := range all {
			task := w.ended(id)
			want(t, task, "completed", "submitted started failed dead redriven parked fired started completed")
		}
		w.noLetters()
		w.nothing(list)
	})
}

// TestDeadLettersByFilter: they are counted, redriven and purged by what they have in common; a preview changes nothing, and other tenants have nothing to do with it.
func TestDeadLettersByFilter(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		w.dead(3, "x", "network")
		w.dead(2, "y", "bad input")
		counts, err := w.client.CountDeadLetters(w.soon(), yard.DeadLetterFilter{}, 0)
		if err != nil || len(counts) != 2 || counts[0].Letters != 3 || counts[1].Letters != 2 || counts[1].ErrorType != "bad input" {
			t.Fatalf("counted %v: %v", counts, err)
		}
		did, err := w.client.Redrive(w.soon(), yard.RedriveOptions{Filter: yard.DeadLetterFilter{Type: "x"}, Preview: true})
		if err != nil || did.Found != 3 || did.Redriven != 0 {
			t.Fatalf("previewed %v: %v", did, err)
		}
		equal(t, "letters", len(w.lettersOf(yard.DeadLetterFilter{})), 5)
		var steps int
		did, err = w.client.Redrive(w.soon(), yard.RedriveOptions{Filter: yard.DeadLetterFilter{Type: "x"}, Rate: 4, Progress: func(yard.Redriven) { steps++ }})
		if err != nil || did.Redriven != 3 || steps < 3 {
			t.Fatalf("redriven %v in %d steps: %v", did, steps, err)
		}
		w.complete(w.take(3, "x")...)
		gone, err := w.client.PurgeDeadLetters(w.soon(), yard.PurgeDeadLettersOptions{Filter: yard.DeadLetterFilter{ErrorType: "bad input"}})
		if err != nil || gone.Purged != 2 {
			t.Fatalf("purged %v: %v", gone, err)
		}
		w.noLetters()
		w.nothing(list)
	})
}

// TestManyLettersComeBackTwice: their letters are deleted together; those that die again are letters again.
func TestManyLettersComeBackTwice(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		const tasks = 100
		all := w.dead(tasks, "x", "network")
		for range 2 {
			did, err := w.client.Redrive(w.soon(), yard.RedriveOptions{Filter: yard.DeadLetterFilter{ErrorType: "network"}, Rate: 10_000, Retry: &yard.RetryPolicy{MaxAttempts: 1}})
			if err != nil || did.Redriven != tasks {
				t.Fatalf("redriven %v: %v", did, err)
			}
			polled := w.take(tasks, "x")
			w.noLetters()
			counts, err := w.client.CountDeadLetters(w.soon(), yard.DeadLetterFilter{}, 0)
			if _, got := w.client.GetDeadLetter(w.soon(), all[0]); err != nil || len(counts) != 0 || fault.CodeOf(got) != fault.NotFound {
				t.Errorf("counted %v: %v; one is read: %v", counts, err, got)
			}
			for _, p := range polled {
				equal(t, "verdict", w.fail(p, &yardv1.Failure{Message: "still", ErrorType: "network"}), "OK")
			}
			w.eventually(func() error {
				if n := len(w.lettersOf(yard.DeadLetterFilter{})); n != tasks {
					return fmt.Errorf("%d letters", n)
				}
				return nil
			})
		}
		gone, err := w.client.PurgeDeadLetters(w.soon(), yard.PurgeDeadLettersOptions{Filter: yard.DeadLetterFilter{Type: "x"}, Rate: 10_000})
		if err != nil || gone.Purged != tasks {
			t.Fatalf("purged %v: %v", gone, err)
		}
		w.noLetters()
		w.nothing(list)
	})
}

// TestRedrivenTaskIsCancelled: it is found wherever it is, and its end as a dead letter is not in the way.
func TestRedrivenTaskIsCancelled(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.dead(1, "x", "network")[0]
		equal(t, "verdict", w.cancel(id).Code, "FAILED_PRECONDITION")
		equal(t, "redriven", w.redrive(&yardv1.RedriveRequest{TaskIds: []string{id}, Retry: &yardv1.RetryPolicy{MaxAttempts: 2, InitialIntervalMs: 60_000}}).Redriven, 1)
		equal(t, "verdict", w.fail(w.takeOne("x"), &yardv1.Failure{Message: "no"}), "OK")
		w.reach(id, "backoff") // in the timer store
		equal(t, "verdict", w.cancel(id).Code, "OK")
		equal(t, "state", stateOf(w.ended(id)), "cancelled")
		_, err := w.client.GetDeadLetter(w.soon(), id)
		refused(t, err, fault.NotFound)
	})
}

// TestRedriveOfNothing: what cannot be redriven is refused, each for itself.
func TestRedriveOfNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		ready := w.submitOne(&yardv1.NewTask{Type: "x"})
		none := ids.NewTaskID(time.Now(), 0, 1).String()
		w.reach(ready, "ready")
		resp := w.redrive(&yardv1.RedriveRequest{TaskIds: []string{ready, none}})
		equal(t, "verdicts", resp.Verdicts[0].Code+" "+resp.Verdicts[1].Code, "FAILED_PRECONDITION NOT_FOUND")
		purged := w.dead(1, "y", "network")[0]
		gone, err := w.client.PurgeDeadLetters(w.soon(), yard.PurgeDeadLettersOptions{TaskIDs: []string{purged}})
		if err != nil || gone.Purged != 1 {
			t.Fatalf("purged %v: %v", gone, err)
		}
		equal(t, "verdict", w.redrive(&yardv1.RedriveRequest{TaskIds: []string{purged}}).Verdicts[0].Code, "FAILED_PRECONDITION")
		equal(t, "state", stateOf(w.get(purged)), "dead")
		testkit.Code(t, "a redrive of everything by mistake", testkit.Err(w.raw("deadletters.redrive", `{}`)), fault.InvalidArgument)
		w.complete(w.takeOne("x"))
	})
}
