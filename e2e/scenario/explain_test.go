package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/explain"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// why waits until the reasons why a task waits have these codes, such as "PAUSED NO_WORKER".
func (w *world) why(id, codes string) []explain.Reason {
	w.t.Helper()
	var found *explain.Explanation
	w.eventually(func() (err error) {
		if found, err = explain.Task(w.soon(), w.client, id); err != nil {
			return err
		}
		var got, text []string
		for _, r := range found.Reasons {
			got, text = append(got, r.Code), append(text, r.Text)
		}
		if strings.Join(got, " ") != codes {
			return fmt.Errorf("task %s waits because of %v, want %s: %v", id, got, codes, text)
		}
		return nil
	})
	return found.Reasons
}

// near reports an instant that is not within some seconds of another one.
func near(t *testing.T, what string, got, want time.Time) {
	t.Helper()
	if d := got.Sub(want).Abs(); d > within {
		t.Errorf("%s is %v, want about %v", what, got, want)
	}
}

// paused pauses something by ann for an hour.
func (w *world) paused(of yard.Part) {
	w.t.Helper()
	testkit.NoError(w.t, testkit.Err(w.client.Pause(w.soon(), of, yard.PauseOptions{Reason: "the relay is down", By: "ann", For: time.Hour})))
}

// TestExplainATaskThatWaitsForItsTime: a delayed one, and one whose attempt failed, in the timer store and in memory; each with a pause as well.
func TestExplainATaskThatWaitsForItsTime(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		later := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 3_600_000})
		r := w.why(later, "DUE_LATER NO_WORKER")[0]
		near(t, "due", r.Until, time.Now().Add(time.Hour))
		equal(t, "about", r.About, false)

		for _, delay := range []int64{5_000_000, 9_000} { // beyond 10 s it goes to the timer store
			id := w.submitOne(&yardv1.NewTask{Type: "x"})
			equal(t, "failed", w.fail(w.takeOne("x"), &yardv1.Failure{Message: "mailbox full", ErrorType: "smtp.452", DelayMs: delay}), "OK")
			r = w.why(id, "BACKOFF")[0]
			near(t, "the next attempt", r.Until, time.Now().Add(time.Duration(delay)*time.Millisecond))
			if !strings.Contains(r.Text, "smtp.452 mailbox full") {
				t.Errorf("it says %q", r.Text)
			}
			if delay > 10_000 {
				w.paused(yard.OfType("x"))
				w.why(id, "BACKOFF PAUSED")
				w.why(later, "DUE_LATER PAUSED")
				testkit.NoError(t, testkit.Err(w.client.Resume(w.soon(), yard.OfType("x"))))
			}
		}
	})
}

// TestExplainAnOrderKey: which task runs before, or blocks the key; that one says that it blocks it. With a pause as well.
func TestExplainAnOrderKey(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		task := &yardv1.NewTask{Type: "x", OrderKey: "account-7", OrderPolicy: yardv1.OrderPolicy_ORDER_POLICY_BLOCK}
		first, second := w.submitOne(task), w.submitOne(task)
		running := w.takeOne()
		equal(t, "running", running.TaskId, first)
		equal(t, "the worker of the first", w.why(first, "RUNNING")[0].By, "scenario")
		r := w.why(second, "BEHIND_ORDER_KEY")[0]
		equal(t, "behind", r.TaskID+" "+r.Ref, first+" account-7")
		w.paused(yard.OfTasklist(list))
		w.why(second, "BEHIND_ORDER_KEY PAUSED")
		testkit.NoError(t, testkit.Err(w.client.Resume(w.soon(), yard.OfTasklist(list))))

		equal(t, "failed", w.fail(running, &yardv1.Failure{Message: "closed", NonRetryable: true}), "OK")
		w.why(first, "BLOCKED")
		if r = w.why(second, "BEHIND_ORDER_KEY")[0]; r.TaskID != first || !strings.Contains(r.Text, "blocks the key") {
			t.Errorf("behind %+v", r)
		}
		equal(t, "cancelled", w.cancel(first).Code, "OK")
		w.why(first, "FINISHED")
		w.why(second, "NO_WORKER_FREE")
	})
}

// TestExplainPauses: of the domain, its tasklist, its type and its group, all at once, with who and until when.
func TestExplainPauses(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x", Group: "acme"})
		for _, of := range []yard.Part{yard.OfTasklist(list), yard.OfType("x"), yard.OfGroup("acme"), yard.OfType("other")} {
			w.paused(of)
		}
		testkit.NoError(t, testkit.Err(w.admin.PauseDomain(w.soon(), w.domain, yard.PauseOptions{Reason: "not paid", By: "root"})))
		all := w.why(id, "SUSPENDED PAUSED PAUSED PAUSED NO_WORKER")
		var refs []string
		for _, r := range all[1:4] {
			refs = append(refs, r.Ref)
			near(t, r.Ref, r.Until, time.Now().Add(time.Hour))
			equal(t, "by", r.By, "ann")
		}
		equal(t, "paused", strings.Join(refs, " "), "tasklist/work type/x group/acme")
		if r := all[0]; r.By != "root" || !r.Until.IsZero() || r.About || !strings.Contains(r.Text, "not paid") {
			t.Errorf("the domain: %+v", r)
		}
	})
}

// TestExplainLimits: full ones with their holders, beside a pause, and in a tasklist that no worker polls.
func TestExplainLimits(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "pay", MaxConcurrency: 1})
		w.putType(yard.TaskType{Name: "ship", MaxConcurrencyPerGroup: 1})
		holder := w.submitOne(&yardv1.NewTask{Type: "pay"})
		equal(t, "running", w.takeOne("pay").TaskId, holder)
		waiting, elsewhere := w.submitOne(&yardv1.NewTask{Type: "pay"}), w.submitOne(&yardv1.NewTask{Type: "pay", Tasklist: "other"})
		r := w.why(waiting, "LIMIT_FULL")[0]
		if r.Ref != "type/pay" || r.Used != 1 || r.Slots != 1 || !r.About || len(r.Holders) != 1 || r.Holders[0].TaskID != holder || r.Holders[0].Worker != "scenario" {
			t.Errorf("full: %+v", r)
		}
		w.why(elsewhere, "LIMIT_FULL NO_WORKER")
		w.paused(yard.OfTasklist(list))
		w.why(waiting, "PAUSED LIMIT_FULL")
		testkit.NoError(t, testkit.Err(w.client.Resume(w.soon(), yard.OfTasklist(list))))

		grouped := w.submit(&yardv1.NewTask{Type: "ship", Group: "acme"}, &yardv1.NewTask{Type: "ship", Group: "acme"}, &yardv1.NewTask{Type: "ship", Group: "other"})
		begun := w.take(2, "ship")
		for _, id := range grouped {
			if !slices.ContainsFunc(begun, func(p *yardv1.PolledTask) bool { return p.TaskId == id }) {
				w.nothing(list) // a poll has found the group full
				equal(t, "the limit of its group", w.why(id, "LIMIT_FULL")[0].Ref, "type/ship/group/acme")
			}
		}
	})
}

// TestExplainRates: when the next attempt may start.
func TestExplainRates(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "pay", Rate: yard.Rate{Tasks: 1, Per: time.Hour, Burst: 1}})
		all := w.submit(&yardv1.NewTask{Type: "pay"}, &yardv1.NewTask{Type: "pay"})
		begun := w.takeOne("pay")
		waiting := all[0]
		if waiting == begun.TaskId {
			waiting = all[1]
		}
		var r explain.Reason
		w.eventually(func() error {
			w.nothing(list) // a poll has found that the rate has no start left
			found, err := explain.Task(w.soon(), w.client, waiting)
			if err != nil || len(found.Reasons) != 1 || found.Reasons[0].Code != "RATE" {
				return fmt.Errorf("%+v %w", found, err)
			}
			r = found.Reasons[0]
			return nil
		})
		equal(t, "the rate", r.Ref, "rate/type/pay")
		near(t, "the next start", r.Until, time.Now().Add(time.Hour))
		w.paused(yard.OfTasklist(list))
		w.why(waiting, "PAUSED RATE")
	})
}

// TestExplainWorkers: none, none for the type, none that is free, and drained ones.
func TestExplainWorkers(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		w.why(id, "NO_WORKER")
		tasks, err := w.poll(&yardv1.PollRequest{Tasklist: list, MaxTasks: 1, Types: []string{"y"}, Worker: "other"})
		if err != nil || len(tasks) > 0 {
			t.Fatal(tasks, err)
		}
		equal(t, "who polled last", w.why(id, "NO_WORKER_FOR_TYPE")[0].LastPoller, "other")
		crew := w.crewOf("crew", yard.WithVersion("v7"), yard.WithConcurrency(1))
		equal(t, "the worker", w.ended(id).State.Name(), "completed")
		running := w.submitOne(&yardv1.NewTask{Type: "held"})
		equal(t, "the worker", w.why(running, "RUNNING")[0].By, "crew")
		waiting := w.submitOne(&yardv1.NewTask{Type: "x"})
		if r := w.why(waiting, "NO_WORKER_FREE")[0]; r.LastPoller != "crew" || r.Version != "v7" || !r.About {
			t.Errorf("all are busy: %+v", r)
		}
		testkit.NoError(t, testkit.Err(w.client.DrainWorker(w.soon(), crew.live().ID, yard.WorkerDrain{Reason: "its disk fails", By: "ann"})))
		if r := w.why(waiting, "NO_WORKER_FREE DRAINED")[1]; r.By != "ann" || r.Ref != crew.live().ID || !strings.Contains(r.Text, "its disk fails") {
			t.Errorf("drained: %+v", r)
		}
		testkit.NoError(t, testkit.Err(w.client.ResumeWorker(w.soon(), crew.live().ID)))
		close(crew.gate)
		want(t, w.ended(waiting), "completed", "submitted started completed")
		w.why(waiting, "FINISHED")
	})
}

// TestExplainATaskOnDisk: in which queue it waits; paused as well.
func TestExplainATaskOnDisk(t *testing.T) {
	t.Parallel()
	const window, batch, batches = 100, 100, 20 // no message fits in beside others, so all are in the lane of their priority
	w := enter(t, own(t, lagging(t, window)))
	var last string
	for range batches {
		last = w.submit(many(batch, &yardv1.NewTask{Type: "x"})...)[batch-1]
	}
	r := w.why(last, "NOT_ADMITTED NO_WORKER")[0]
	// Tasks of other domains may lie in the lane, so it is not said how many.
	if !strings.HasPrefix(r.Ref, "p3") || !r.About || r.Ref == "p3" && r.Waiting != 0 {
		t.Errorf("on disk: %+v", r)
	}
	w.paused(yard.OfTasklist(list))
	w.why(last, "NOT_ADMITTED PAUSED NO_WORKER")
}

// I14: a task of another domain does not exist, and nothing of another domain keeps a task waiting.
func TestI14_ExplainIsOfOneDomain(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		other := enter(t, w.stack)
		for _, one := range []*world{w, other} {
			one.putType(yard.TaskType{Name: "pay", MaxConcurrency: 1})
		}
		other.paused(yard.OfTasklist(list))
		id := w.submitOne(&yardv1.NewTask{Type: "pay"})
		w.takeOne("pay")
		theirs := other.submitOne(&yardv1.NewTask{Type: "pay"})
		mine := w.submitOne(&yardv1.NewTask{Type: "pay"})
		equal(t, "the holder", w.why(mine, "LIMIT_FULL")[0].Holders[0].TaskID, id)
		other.why(theirs, "PAUSED NO_WORKER")
		_, err := explain.Task(w.soon(), w.client, theirs)
		refused(t, err, fault.NotFound)
	})
}
