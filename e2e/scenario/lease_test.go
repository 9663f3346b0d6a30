package scenario_test

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// lease is how long attempts may last here, ms: the first one lets it pass, the second
// one has to do with it, on a busy machine too.
const lease = 3000

// stale checks that an attempt which is over can do nothing more.
func (w *world) stale(p *yardv1.PolledTask) {
	w.t.Helper()
	equal(w.t, "complete", w.complete(p), "STALE")
	equal(w.t, "fail", w.fail(p, &yardv1.Failure{Message: "late"}), "STALE")
	equal(w.t, "hand back", w.fail(p, &yardv1.Failure{NotStarted: true}), "STALE")
	equal(w.t, "heartbeat", w.beat(p).Code, "STALE")
}

// TestI4AnOverdueAttemptIsStale: start-to-close runs out, and that is a failure.
func TestI4AnOverdueAttemptIsStale(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", StartToCloseMs: lease, Retry: &yardv1.RetryPolicy{MaxAttempts: 2, InitialIntervalMs: 50}})
		first := w.takeOne()
		started := w.get(id)
		equal(t, "deadline", first.DeadlineMs, started.Events[1].AtMs+lease)
		second := w.takeOne()
		equal(t, "id", second.TaskId, id)
		equal(t, "attempt", second.Attempt, 2)
		w.stale(first)
		equal(t, "verdict", w.complete(second), "OK")
		task := w.ended(id)
		want(t, task, "completed", "submitted started timed_out started completed")
		equal(t, "failures", task.Failures, 1)
		if early := first.DeadlineMs - task.Events[2].AtMs; early > 0 {
			t.Errorf("taken back %d ms early", early)
		}
	})
}

// TestI4ASilentAttemptIsStale: a missed heartbeat costs a grant and no failure.
func TestI4ASilentAttemptIsStale(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", HeartbeatTimeoutMs: lease, Retry: &yardv1.RetryPolicy{MaxAttempts: 1}})
		first := w.takeOne()
		equal(t, "heartbeat timeout", first.HeartbeatTimeoutMs, lease)
		second := w.takeOne()
		equal(t, "id", second.TaskId, id)
		equal(t, "attempt", second.Attempt, 1)
		w.stale(first)
		equal(t, "verdict", w.complete(second), "OK")
		task := w.ended(id)
		want(t, task, "completed", "submitted started lost started completed")
		equal(t, "failures", task.Failures, 0)
	})
}

// TestHeartbeatsExtendTheLease: beats carry an attempt over several timeouts.
func TestHeartbeatsExtendTheLease(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const timeout = 2000
		id := w.submitOne(&yardv1.NewTask{Type: "x", HeartbeatTimeoutMs: timeout})
		p := w.takeOne()
		started := w.get(id).Events[1].AtMs
		var lease int64
		w.eventually(func() error {
			v := must[yardv1.OutcomeResponse](w, "tasks.heartbeat", &yardv1.HeartbeatRequest{
				Tasks: []*yardv1.Beat{{TaskId: p.TaskId, Token: p.Token, Progress: jsonPayload(`{"percent":40}`)}},
			}).Verdicts[0]
			equal(t, "verdict", v.Code, "OK")
			if v.LeaseUntilMs < lease {
				t.Fatalf("the lease went back from %d to %d", lease, v.LeaseUntilMs)
			}
			if lease = v.LeaseUntilMs; lease < started+2*timeout {
				return fmt.Errorf("still in the first lease: %d ms", lease-started)
			}
			return nil
		})
		task := w.get(id)
		want(t, task, "running", "submitted started")
		equal(t, "progress", string(task.Progress.GetData()), `{"percent":40}`)
		equal(t, "verdict", w.complete(p), "OK")
		want(t, w.ended(id), "completed", "submitted started completed")
	})
}

// TestI4RepeatsGetTheSameVerdict: an outcome repeated by the same attempt is OK
// again, and another outcome of it is not.
func TestI4RepeatsGetTheSameVerdict(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.submit(&yardv1.NewTask{Type: "a"}, &yardv1.NewTask{Type: "b", Retry: &yardv1.RetryPolicy{InitialIntervalMs: 60_000, MaxIntervalMs: 60_000}}, &yardv1.NewTask{Type: "c"})
		done, failed, back := w.takeOne("a"), w.takeOne("b"), w.takeOne("c")
		for range 3 {
			equal(t, "complete", w.complete(done), "OK")
			equal(t, "fail", w.fail(failed, &yardv1.Failure{Message: "no"}), "OK")
			equal(t, "hand back", w.fail(back, &yardv1.Failure{NotStarted: true}), "OK")
		}
		equal(t, "fail after complete", w.fail(done, &yardv1.Failure{Message: "no"}), "STALE")
		equal(t, "complete after fail", w.complete(failed), "STALE")
		equal(t, "complete after hand back", w.complete(back), "STALE")
		equal(t, "heartbeat after complete", w.beat(done).Code, "STALE")

		// The same entry twice in one request.
		again := w.takeOne("c")
		equal(t, "twice at once", w.complete(again, again), "OK OK")
		want(t, w.ended(done.TaskId), "completed", "submitted started completed")
		want(t, w.parked(failed.TaskId), "backoff", "submitted started failed parked")
		want(t, w.ended(again.TaskId), "completed", "submitted started handed_back started completed")
	})
}

// TestTokensOfOthersAreRefused: a token is good for its own task and nothing else. One
// that was made up counts as of a task that does not exist (R6).
func TestTokensOfOthersAreRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.submit(&yardv1.NewTask{Type: "a"}, &yardv1.NewTask{Type: "b"})
		a, b := w.takeOne("a"), w.takeOne("b")
		equal(t, "mixed up", w.complete(&yardv1.PolledTask{TaskId: a.TaskId, Token: b.Token}), "NOT_FOUND")
		id, tokens := taskID(t, a.TaskId), w.tokens()
		other, err := tokens.Read(id, a.Token)
		if err != nil {
			t.Fatal(err)
		}
		made := ids.NewTokens([ids.TokenSecretBytes]byte{1}).Print(id, other)
		equal(t, "made up", w.complete(&yardv1.PolledTask{TaskId: a.TaskId, Token: made}), "NOT_FOUND")
		other.Nonce++
		equal(t, "of another attempt", w.complete(&yardv1.PolledTask{TaskId: a.TaskId, Token: tokens.Print(id, other)}), "STALE")
		want(t, w.get(a.TaskId), "running", "submitted started")
		equal(t, "verdicts", w.complete(a, b), "OK OK")
	})
}
