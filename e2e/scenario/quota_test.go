package scenario_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
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
		w.eventually(func() error {
			// Again each time: the other client's poll may have had the place.
			testkit.NoError(t, dead.nc.PublishRequest("yard.v1."+w.domain+".tasks.poll", inbox, []byte(`{"tasklist":"`+list+`","max_tasks":1,"wait_ms":60000}`)))
			if err := poll(); !overQuota(err) {
				return fmt.Errorf("a poll was answered with %w", err)
			}
			return nil
		})
		dead.nc.Close()
		testkit.Eventually(t, 50*time.Second, func() error { return poll(inbox) }) // its own time ends after 60 s
	})
}

// uses waits until a domain with a quota is shown to have so many tasks waiting.
func (w *world) uses(tasks int) {
	w.t.Helper()
	w.eventually(func() error {
		d, err := w.admin.GetDomain(w.soon(), w.domain)
		if err == nil && (d.Use == nil || d.Use.WaitingTasks != int64(tasks)) {
			err = fmt.Errorf("it uses %+v, want %d tasks", d.Use, tasks)
		}
		return err
	})
}

// untilOverQuota submits requests like this one until one is refused for the quota, and returns how many tasks were accepted.
func (w *world) untilOverQuota(req *yardv1.SubmitRequest) (accepted int) {
	w.t.Helper()
	for range 1000 {
		resp, err := w.handIn(req)
		if overQuota(err) {
			return accepted
		}
		testkit.NoError(w.t, err)
		accepted += len(resp.TaskIDs())
	}
	w.t.Fatalf("%d tasks were accepted", accepted)
	return 0
}

// TestADomainWithItsQuotaWaitingIsRefused, delayed tasks included, until they run or have ended; what was accepted stays, and a repeat of it is answered.
func TestADomainWithItsQuotaWaitingIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const most, size = 300, 20
		testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, Quota: yard.Quota{WaitingTasks: most}})))
		w.uses(0)
		repeated := &yardv1.SubmitRequest{Tasklist: list, Tasks: many(size, &yardv1.NewTask{Type: "x"})}
		first, err := w.handIn(repeated)
		testkit.NoError(t, err)
		w.uses(size)
		later := w.submit(many(100, &yardv1.NewTask{Type: "x", DelayMs: 3_600_000})...)
		accepted := w.untilOverQuota(&yardv1.SubmitRequest{Tasklist: list, Tasks: many(size, &yardv1.NewTask{Type: "x"})})
		if all := size + len(later) + accepted; all < most/2 {
			t.Errorf("%d tasks were accepted of %d", all, most)
		}
		w.eventually(func() error { // what was reported counts twice for up to a second, so it may be refused a little early
			accepted += w.untilOverQuota(&yardv1.SubmitRequest{Tasklist: list, Tasks: many(size, &yardv1.NewTask{Type: "x"})})
			if all := size + len(later) + accepted; all < most {
				return fmt.Errorf("%d tasks were accepted of %d", all, most)
			}
			return nil
		})
		w.uses(size + len(later) + accepted)
		if n := w.untilOverQuota(&yardv1.SubmitRequest{Tasklist: list, Tasks: many(1, &yardv1.NewTask{Type: "x"})}); n != 0 {
			t.Errorf("%d more were accepted", n)
		}
		repeated.Tries++
		again, err := call[yardv1.SubmitResponse](w, "tasks.submit", repeated)
		testkit.NoError(t, err)
		testkit.Equal(t, "the answer to a repeat", fmt.Sprint(again.TaskIDs()), fmt.Sprint(first.TaskIDs()))
		drain(w, map[string]bool{}, size+accepted)
		w.uses(len(later))
		w.eventually(func() error {
			_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: many(size, &yardv1.NewTask{Type: "x"})})
			return err
		})
		w.uses(len(later) + size)
	})
}

// TestI7_WhatIsOnDiskCountsForTheQuota: the bytes of a backlog of many windows, most of it unread, count, also for owners and a frontend that have just started.
func TestI7_WhatIsOnDiskCountsForTheQuota(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "floods the system")
	const most, size, payload = 1_000_000, 50, 1000
	services := stack.DefaultServices()
	services.History.Partition.WindowTasks = 50
	cfg := stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir(), Services: &services}
	w := enter(t, own(t, cfg))
	testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, Quota: yard.Quota{StoredBytes: most}})))
	w.uses(0)
	large := &yardv1.NewTask{Type: "x", Payload: &yardv1.Payload{Data: []byte(`"` + strings.Repeat("x", payload-2) + `"`)}}
	req, accepted := &yardv1.SubmitRequest{Tasklist: list, Tasks: many(size, large)}, 0
	w.eventually(func() error {
		accepted += w.untilOverQuota(req)
		if accepted < most*8/10/payload {
			return fmt.Errorf("%d tasks were accepted", accepted)
		}
		return nil
	})
	w.uses(accepted)
	w = w.restarted(cfg)
	w.uses(accepted)
	d, err := w.admin.GetDomain(w.soon(), w.domain)
	if testkit.NoError(t, err); d.Use.StoredBytes < int64(accepted*payload) || d.Use.StoredBytes > int64(accepted*payload)*13/10 {
		t.Errorf("%d tasks of %d bytes take %d", accepted, payload, d.Use.StoredBytes)
	}
	if d.Use.StoredBytes >= most {
		testkit.Equal(t, "accepted after a restart", w.untilOverQuota(req), 0)
	}
	drain(w, map[string]bool{}, accepted)
	w.uses(0)
	w.eventually(func() error { return testkit.Err(w.handIn(req)) })
}
