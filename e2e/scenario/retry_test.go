package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// deadLetter waits until a dead task is kept, and returns what is.
func (w *world) deadLetter(tasklist, id string) *logv1.Record {
	w.t.Helper()
	subject := topology.Dead(w.domain, tasklist, taskID(w.t, id))
	js := w.inside()
	var batch logv1.Batch
	w.eventually(func() error {
		letter, err := natslog.LastForSubject(w.soon(), js, topology.DeadLetterStream, subject)
		if err != nil {
			return err
		}
		if letter == nil {
			return errNothing
		}
		return batch.UnmarshalVT(letter.Data)
	})
	testkit.MustEqual(w.t, "tasks in a dead letter", len(batch.Tasks), 1)
	return batch.Tasks[0]
}

func TestRetriesBackOffThenDeadLetter(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{
			Type: "bank", Payload: jsonPayload(`{"iban":"x"}`), Priority: 1,
			Retry: &yardv1.RetryPolicy{MaxAttempts: 3, InitialIntervalMs: 100, Backoff: 3, MaxIntervalMs: 250},
		})
		waits := [][2]int64{{90, 110}, {204, 250}} // 100 and 10 % to either side; 300 is over the longest, which no jitter exceeds
		for attempt := int32(1); attempt <= 3; attempt++ {
			p := w.takeOne()
			equal(t, "attempt", p.Attempt, attempt)
			equal(t, "verdict", w.fail(p, &yardv1.Failure{Message: "no money", ErrorType: "funds"}), "OK")
		}
		task := w.ended(id)
		want(t, task, "dead", "submitted started failed started failed started failed dead")
		equal(t, "failures", task.Failures, 3)
		equal(t, "error", task.ErrorMessage, "no money")
		equal(t, "error type", task.ErrorType, "funds")
		events := past(task)
		for i, wait := range waits {
			failed, started := events[2+2*i], events[3+2*i]
			if got := failed.DueAtMs - failed.AtMs; got < wait[0] || got > wait[1] {
				t.Errorf("wait %d is of %d ms, want %d to %d", i+1, got, wait[0], wait[1])
			}
			if started.AtMs < failed.DueAtMs {
				t.Errorf("attempt %d began %d ms early", i+2, failed.DueAtMs-started.AtMs)
			}
		}

		letter := w.deadLetter(list, id)
		equal(t, "type", letter.Type, "bank")
		equal(t, "domain", letter.Domain, w.domain)
		equal(t, "payload", string(letter.Payload), `{"iban":"x"}`)
		equal(t, "priority", letter.Priority, 1)
		equal(t, "attempts allowed", letter.Policy.GetMaxAttempts(), 3)
		equal(t, "error", letter.ErrorMessage, "no money")
		equal(t, "steps", len(letter.Steps), len(task.Events))
		w.nothing(list)
	})
}

// parked waits until a failed task is in the timer store.
func (w *world) parked(id string) *yardv1.Task {
	w.t.Helper()
	var task *yardv1.Task
	w.eventually(func() error {
		if task = w.get(id); !strings.HasSuffix(eventsOf(task), "parked") {
			return fmt.Errorf("%s is not parked: %s", id, eventsOf(task))
		}
		return nil
	})
	return task
}

// TestARetryIsReadyWhenItsTimeHasCome, though no worker polls: who starts workers by the backlog sees it.
func TestARetryIsReadyWhenItsTimeHasCome(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		w.fail(w.takeOne(), &yardv1.Failure{DelayMs: 300})
		w.reach(id, "ready")
		w.described(list, func(l yard.TasklistInfo) bool { return l.Ready == 1 && l.Backoff == 0 })
		w.complete(w.takeOne())
	})
}

// TestLongRetriesAreParked: longer than 10 s, the wait is the timer store's.
func TestLongRetriesAreParked(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", Payload: jsonPayload(`"kept"`)})
		equal(t, "verdict", w.fail(w.takeOne(), &yardv1.Failure{Message: "come back later", DelayMs: 11_000}), "OK")
		want(t, w.parked(id), "backoff", "submitted started failed parked")
		p := w.takeOne()
		equal(t, "attempt", p.Attempt, 2)
		equal(t, "payload", string(p.Payload.Data), `"kept"`)
		equal(t, "verdict", w.complete(p), "OK")
		task := w.ended(id)
		want(t, task, "completed", "submitted started failed parked fired started completed")
		failed, started := past(task)[2], past(task)[5]
		if early := failed.DueAtMs - started.AtMs; early > 0 {
			t.Errorf("the second attempt began %d ms early", early)
		}
		equal(t, "wait", failed.DueAtMs-failed.AtMs, 11_000)
		equal(t, "failures", task.Failures, 1)
	})
}

func TestHandedBackBurnsNoAttempt(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", Retry: &yardv1.RetryPolicy{MaxAttempts: 1}})
		var held []int32
		for range 3 {
			p := w.takeOne()
			held = append(held, w.grant(p))
			equal(t, "attempt", p.Attempt, w.grant(p))
			equal(t, "failures so far", p.Failures, 0)
			equal(t, "verdict", w.fail(p, &yardv1.Failure{NotStarted: true}), "OK")
		}
		equal(t, "verdict", w.complete(w.takeOne()), "OK")
		task := w.ended(id)
		want(t, task, "completed", "submitted started handed_back started handed_back started handed_back started completed", held...)
		equal(t, "failures", task.Failures, 0)
		equal(t, "grants", int(task.Grants), strings.Count(eventsOf(task), "started"))
	})
}
