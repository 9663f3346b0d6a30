package scenario_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// lease is how long attempts last here, ms: the first one lets it pass. On a busy machine the
// next ones may too, and are followed by others.
const lease = 3000

// stale checks that an attempt which is over can do nothing more.
func (w *world) stale(p *yardv1.PolledTask) {
	w.t.Helper()
	equal(w.t, "complete", w.complete(p), "STALE")
	equal(w.t, "fail", w.fail(p, &yardv1.Failure{Message: "late"}), "STALE")
	equal(w.t, "hand back", w.fail(p, &yardv1.Failure{NotStarted: true}), "STALE")
	equal(w.t, "heartbeat", w.beat(p).Code, "STALE")
}

// started is when the attempt in hand was granted, the last one of a task that no one polls for.
func (w *world) started(id string) int64 {
	w.t.Helper()
	at := int64(0)
	for _, e := range past(w.get(id)) {
		if kindOf(e) == "started" {
			at = e.AtMs
		}
	}
	return at
}

// finish completes a task by the attempt in hand, or where its lease is over by one of the next. It
// returns how many were over. No attempt may be stale before its lease is over.
func (w *world) finish(p *yardv1.PolledTask) (over int) {
	w.t.Helper()
	w.eventually(func() error {
		code := w.complete(p)
		if code == "OK" {
			return nil
		}
		left := w.started(p.TaskId) + lease - time.Now().UnixMilli()
		if code != "STALE" || left > 0 {
			w.t.Fatalf("an attempt with a lease of %d ms more: %s", left, code)
		}
		over++
		p = w.takeOne()
		return fmt.Errorf("the leases of %d attempts ran out", over)
	})
	return over
}

// TestI4AnOverdueAttemptIsStale: start-to-close runs out, and that is a failure.
func TestI4AnOverdueAttemptIsStale(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", StartToCloseMs: lease, Retry: &yardv1.RetryPolicy{MaxAttempts: 1000, InitialIntervalMs: 50, MaxIntervalMs: 50}})
		first := w.takeOne()
		if first.TimeoutMs <= 0 || first.TimeoutMs > lease {
			t.Errorf("an attempt of %d ms has %d left when it is sent", lease, first.TimeoutMs)
		}
		deadline := w.started(id) + lease
		second := w.takeOne()
		equal(t, "id", second.TaskId, id)
		equal(t, "attempt", second.Attempt, w.grant(second))
		w.stale(first)
		over := 1 + w.finish(second)
		task := w.ended(id)
		want(t, task, "completed", "submitted"+strings.Repeat(" started timed_out", over)+" started completed")
		equal(t, "failures", int(task.Failures), over)
		if early := deadline - past(task)[2].AtMs; early > 0 {
			t.Errorf("taken back %d ms early", early)
		}
	})
}

// TestI4ASilentAttemptIsStale: a missed heartbeat costs a grant and no failure.
func TestI4ASilentAttemptIsStale(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", HeartbeatTimeoutMs: lease, Retry: &yardv1.RetryPolicy{MaxAttempts: 1}})
		first := w.takeOne()
		equal(t, "heartbeat timeout", first.HeartbeatTimeoutMs, lease)
		second := w.takeOne()
		equal(t, "id", second.TaskId, id)
		equal(t, "attempt", second.Attempt, w.grant(second))
		equal(t, "failures so far", second.Failures, 0)
		w.stale(first)
		over := 1 + w.finish(second)
		task := w.ended(id)
		want(t, task, "completed", "submitted"+strings.Repeat(" started lost", over)+" started completed")
		equal(t, "failures", task.Failures, 0)
	})
}

// TestHeartbeatsExtendTheLease: beats carry an attempt over several timeouts.
func TestHeartbeatsExtendTheLease(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", HeartbeatTimeoutMs: lease, Retry: &yardv1.RetryPolicy{MaxAttempts: 1}})
		lost := ""
		w.eventually(func() error {
			p := w.takeOne()
			until := w.carry(p)
			task := w.get(id)
			if code := w.complete(p); code == "STALE" && time.Now().UnixMilli() >= until {
				lost += " started lost"
				return errors.New("beats came too late on a slow machine")
			} else if code != "OK" {
				t.Fatalf("verdict %s in the lease", code)
			}
			want(t, task, "running", "submitted"+lost+" started")
			equal(t, "progress", string(task.Progress.GetData()), `{"percent":40}`)
			return nil
		})
		want(t, w.ended(id), "completed", "submitted"+lost+" started completed")
	})
}

// carry sends beats of an attempt until its lease goes on for longer than two timeouts from its start,
// or is over. It returns until when the lease is.
func (w *world) carry(p *yardv1.PolledTask) (until int64) {
	w.t.Helper()
	until = w.started(p.TaskId) + lease
	enough := until + lease
	w.eventually(func() error {
		before := time.Now().UnixMilli()
		v := w.outcome("tasks.heartbeat", &yardv1.HeartbeatRequest{
			Tasks: []*yardv1.Beat{{TaskId: p.TaskId, Token: p.Token, Progress: jsonPayload(`{"percent":40}`)}},
		}).Verdicts[0]
		switch {
		case v.Code == "STALE" && time.Now().UnixMilli() >= until:
			return nil
		case v.Code != "OK":
			w.t.Fatalf("a beat in the lease: %s", v.Code)
		case v.LeaseMs <= 0 || v.LeaseMs > lease:
			w.t.Fatalf("a lease of %d ms has %d left after a beat", lease, v.LeaseMs)
		}
		// It was sent after the beat, so the lease lasts so long at least.
		if until = max(until, before+v.LeaseMs); until < enough {
			return fmt.Errorf("the lease ends %d ms too soon", enough-until)
		}
		return nil
	})
	return until
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
		want(t, w.ended(again.TaskId), "completed", "submitted started handed_back started completed", w.grant(back))
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
		testkit.NoError(t, err)
		made := ids.NewTokens([ids.TokenSecretBytes]byte{1}).Print(id, other)
		equal(t, "made up", w.complete(&yardv1.PolledTask{TaskId: a.TaskId, Token: made}), "NOT_FOUND")
		other.Nonce++
		equal(t, "of another attempt", w.complete(&yardv1.PolledTask{TaskId: a.TaskId, Token: tokens.Print(id, other)}), "STALE")
		want(t, w.get(a.TaskId), "running", "submitted started")
		equal(t, "verdicts", w.complete(a, b), "OK OK")
	})
}
