package scenario_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// overQuota tells that an error is a refusal for a quota, with a time to come again.
func overQuota(err error) bool {
	e := fault.From(err)
	return e != nil && e.Code == fault.ResourceExhausted && e.Detail[fault.DetailReason] == "quota" && e.RetryAfter > 0
}

// TestASubmitOverTheQuotaIsRefused and stores nothing; another domain goes on, and so does this one once its quota is raised.
func TestASubmitOverTheQuotaIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for what, q := range map[string]yard.Quota{"tasks": {SubmitTasksPerSecond: 1}, "bytes": {SubmitBytesPerSecond: 1000}} {
			testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, Quota: q})))
			tasks := make([]*yardv1.NewTask, 100)
			for i := range tasks {
				tasks[i] = &yardv1.NewTask{Type: what}
			}
			accepted := 0
			w.eventually(func() error { // a frontend may hear of the quota, or of the others' tasks, a moment later
				resp, err := w.handIn(&yardv1.SubmitRequest{Tasklist: what, Tasks: tasks})
				if accepted += len(resp.GetResults()); !overQuota(err) {
					return fmt.Errorf("a submit was answered with %w", err)
				}
				return nil
			})
			d, err := w.admin.GetDomain(w.soon(), w.domain)
			if err != nil || d.Quota != q || d.Use == nil {
				t.Errorf("%+v, %v", d, err)
			}
			other := enter(t, w.stack)
			other.submitOne(&yardv1.NewTask{Type: "x"})
			testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, Quota: yard.Quota{SubmitTasksPerSecond: 1_000_000}})))
			w.eventually(func() error {
				resp, err := w.handIn(&yardv1.SubmitRequest{Tasklist: what, Tasks: tasks[:1]})
				accepted += len(resp.GetResults())
				return err
			})
			w.described(what, func(d yard.TasklistInfo) bool { return d.Ready == int64(accepted) })
		}
	})
}

// TestAPollOverTheQuotaIsRefused until another one ends.
func TestAPollOverTheQuotaIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, Quota: yard.Quota{OpenPolls: 1}})))
		poll := func(wait time.Duration) error {
			_, err := w.client.Wire().Poll(w.soon(), &yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: wait.Milliseconds()})
			return err
		}
		waits := make(chan error)
		go func() {
			for { // it waits from some try on
				if err := poll(5 * time.Second); !overQuota(err) {
					waits <- err
					return
				}
			}
		}()
		w.eventually(func() error {
			if err := poll(time.Millisecond); !overQuota(err) {
				return fmt.Errorf("a poll was answered with %w", err)
			}
			return nil
		})
		w.submitOne(&yardv1.NewTask{Type: "x"})
		testkit.Check(t, <-waits)
		w.eventually(func() error { return poll(time.Millisecond) })
	})
}

// TestAPollOfADeadClientLeavesItsPlace once another client names it as given up, also though that one is over the quota by it.
func TestAPollOfADeadClientLeavesItsPlace(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, Quota: yard.Quota{OpenPolls: 1}})))
		poll := func(unanswered ...string) error {
			_, err := w.client.Wire().Poll(w.soon(), &yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 1, Unanswered: unanswered})
			return err
		}
		dead := join(t, w.stack, w.domain)
		inbox := dead.nc.NewInbox()
		testkit.NoError(t, testkit.Err(dead.nc.SubscribeSync(inbox)))
		testkit.NoError(t, dead.nc.PublishRequest("yard.v1."+w.domain+".tasks.poll", inbox, []byte(`{"tasklist":"`+list+`","max_tasks":1,"wait_ms":60000}`)))
		w.eventually(func() error {
			if err := poll(); !overQuota(err) {
				return fmt.Errorf("a poll was answered with %w", err)
			}
			return nil
		})
		dead.nc.Close()
		testkit.Eventually(t, 50*time.Second, func() error { return poll(inbox) }) // its own time ends after 60 s
	})
}
