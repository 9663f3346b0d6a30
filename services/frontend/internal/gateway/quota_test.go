package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/distribution"
)

// quota gives the domain of the rig one.
func (r *rig) quota(q string) {
	r.catalog.kv.Store(catalog.Domains.Key("", "shop"), `{"name":"shop","quota":{`+q+`}}`)
}

// wantOverQuota checks a refusal for the quota of the domain.
func wantOverQuota(t *testing.T, err error) {
	t.Helper()
	if e := faultOf(t, err, fault.ResourceExhausted); e.Detail[fault.DetailReason] != "quota" || e.RetryAfter == 0 {
		t.Errorf("got %v, retry after %v", e, e.RetryAfter)
	}
}

// openPolls is how many the quota counts.
func (r *rig) openPolls() int32 { return r.Quotas.Use(r.catalog.Domain("shop")).OpenPolls }

// TestARefusedPollSaysWhatWasGivenUp: one that is over the quota, or for which there is no place. The polls that it names may be what takes the room.
func TestARefusedPollSaysWhatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, most := range map[string]int{"2 polls that wait": 2, "too many polls wait": poolOfOne} {
			r := newRig(t, small)
			r.quota(`"open_polls":100`)
			if most == 2 {
				r.quota(`"open_polls":2`)
			}
			for range most {
				wantCode(t, (<-r.poll(time.Minute)).err, "")
			}
			r.bus.givenUp = nil
			e := faultOf(t, (<-r.poll(time.Minute)).err, fault.ResourceExhausted)
			if !strings.Contains(e.Message, what) || e.RetryAfter == 0 {
				t.Errorf("%v, want %q", e, what)
			}
			if got := r.bus.givenUp; len(got) != 1 || got[0].Domain != "shop" || !slices.Equal(got[0].Inboxes, []string{"old"}) {
				t.Errorf("%s: matching was notified of %v", what, got)
			}
			testkit.Equal(t, "polls are sent", len(r.bus.sentPolls()), most)
		}
	})
}

// TestOnlyOpenPollsCount: neither those that find no place, nor those that were answered.
func TestOnlyOpenPollsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small)
		r.quota(`"open_polls":100`)
		for range poolOfOne + 3 {
			<-r.poll(time.Minute)
		}
		testkit.Equal(t, "polls are open", r.openPolls(), poolOfOne)
		for _, s := range r.bus.sentPolls() {
			r.tellAnswered(t, s.id)
		}
		testkit.Equal(t, "polls are open after all were answered", r.openPolls(), 0)
	})
}

// wantLeft checks that so many single tasks are within the quota now, which is used up then.
func (r *rig) wantLeft(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		if o := <-r.submit(t, tasks(1)); o.err != nil {
			t.Fatalf("%d of %d tasks: %v", i, n, o.err)
		}
	}
	wantOverQuota(t, (<-r.submit(t, tasks(1))).err)
}

// TestARepeatOfWhatIsStoredIsFree, however often it comes, and whether the client counts its tries or not.
func TestARepeatOfWhatIsStoredIsFree(t *testing.T) {
	for _, counted := range []bool{true, false} {
		onKnowing(t, func(t *testing.T, r *rig) {
			r.quota(`"submit_tasks_per_s":5`)
			both := withID(ordered(keyIn(0), keyIn(1)), counted)
			one := withID(tasks(1), counted)
			for range 10 {
				for _, req := range []*yardv1.SubmitRequest{one, both} {
					accepted(t, <-r.submit(t, req.CloneVT()))
					if counted {
						req.Tries++
					}
				}
			}
			r.wantLeft(t, 2)
			accepted(t, <-r.submit(t, both))
			accepted(t, <-r.submit(t, one))
		})
	}
}

// TestOnlyWhatMayBeStoredIsCharged, once, however often the log is asked.
func TestOnlyWhatMayBeStoredIsCharged(t *testing.T) {
	keyed := func() *yardv1.SubmitRequest {
		req := tasks(30)
		for i, task := range req.Tasks {
			task.UniqueKey = fmt.Sprint(i)
		}
		return req
	}
	for what, c := range map[string]struct {
		req  *yardv1.SubmitRequest
		id   bool
		err  error
		code fault.Code
		left int
	}{
		"full":                {tasks(30), false, natslog.ErrFull, fault.ResourceExhausted, 5},
		"full, keyed":         {keyed(), false, natslog.ErrFull, fault.ResourceExhausted, 5},
		"full, with an id":    {tasks(30), true, natslog.ErrFull, fault.ResourceExhausted, 5},
		"not stored":          {tasks(30), false, natslog.ErrNotStored, fault.Unavailable, 5},
		"unknown":             {tasks(30), false, natslog.ErrOutcomeUnknown, fault.Unknown, 0},
		"unknown, with an id": {tasks(30), true, natslog.ErrOutcomeUnknown, fault.Unknown, 0},
	} {
		inBubble(t, what, func(t *testing.T) {
			r := newKnowingRig(t)
			if c.id {
				withID(c.req, false)
			}
			r.quota(`"submit_tasks_per_s":5`)
			r.log.fault = func(int, natslog.Msg) (bool, error) { return false, c.err }
			wantCode(t, (<-r.submitBy(t, c.req, 2*time.Second, 0)).err, c.code)
			r.log.heals()
			time.Sleep(distribution.FullFor)
			r.wantLeft(t, c.left)
		})
	}
	onKnowing(t, func(t *testing.T, r *rig) {
		r.quota(`"submit_tasks_per_s":40`)
		n := 0
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if n++; n < 5 {
				return false, natslog.ErrNotStored
			}
			return true, nil
		}
		accepted(t, <-r.submit(t, withID(tasks(30), false)))
		accepted(t, <-r.submit(t, tasks(30)))
	})
	onKnowing(t, func(t *testing.T, r *rig) {
		r.quota(`"submit_tasks_per_s":5`)
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if r.log.partitions[0] == nil && r.log.partitions[1] == nil && r.log.partitions[2] == nil {
				return true, natslog.ErrOutcomeUnknown
			}
			return true, nil // the second try meets the first one
		}
		accepted(t, <-r.submit(t, withID(tasks(30), false)))
		r.wantLeft(t, 0)
	})
}

// TestPartsOfARequestShareTheirCharge: all are taken or none is, also of a request that may be a repeat. A part that is not stored is not charged.
func TestPartsOfARequestShareTheirCharge(t *testing.T) {
	for _, counted := range []bool{true, false} {
		onKnowing(t, func(t *testing.T, r *rig) {
			r.quota(`"submit_tasks_per_s":7`)
			three := func() *yardv1.SubmitRequest { return withID(ordered(keyIn(0), keyIn(1), keyIn(2)), counted) }
			accepted(t, <-r.submit(t, three()))
			r.log.fault = func(p int, _ natslog.Msg) (bool, error) {
				if p == 1 {
					return false, natslog.ErrFull
				}
				return true, nil
			}
			wantCode(t, (<-r.submit(t, three())).err, fault.Unknown)
			r.log.heals()
			stored := r.log.messages()
			r.wantLeft(t, 2)
			refused := three()
			wantOverQuota(t, (<-r.submit(t, refused)).err)
			testkit.Equal(t, "messages are stored", r.log.messages(), stored+2)
			time.Sleep(time.Second)
			if counted {
				refused.Tries++
			}
			accepted(t, <-r.submit(t, refused))
		})
	}
}

// TestTheQuotaCountsBesideACap: what it refuses is not queued, and is counted as refused for the quota.
func TestTheQuotaCountsBesideACap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := capped(t, 10)
		r.quota(`"submit_tasks_per_s":2`)
		r.wantLeft(t, 2)
		r.wantQueued(t, "of which the quota refused one", 2)
		for range 9 {
			time.Sleep(time.Second)
			<-r.submit(t, tasks(1))
		}
		wantFull(t, <-r.submit(t, tasks(1)), "/tasks/0/tasklist")
		if quota, queue := r.metrics.Counter(signals.SubmitsRefused, signals.ReasonQuota).Value(), r.metrics.Counter(signals.SubmitsRefused, signals.ReasonQueueFull).Value(); quota != 1 || queue != 2 {
			t.Errorf("%d are counted for the quota, %d for the queue", quota, queue)
		}
	})
}

// TestWhatAKeyAnswersIsSubmitted: a task that exists counts as one that is created.
func TestWhatAKeyAnswersIsSubmitted(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		r.quota(`"submit_tasks_per_s":4`)
		for _, conflict := range []yardv1.OnConflict{0, 0, yardv1.OnConflict_ON_CONFLICT_REJECT} {
			req := tasks(1)
			req.Tasks[0].UniqueKey, req.Tasks[0].OnConflict = "k", conflict
			wantCode(t, (<-r.submit(t, req)).err, "")
		}
		r.wantLeft(t, 1)
	})
}

// TestANewCallbackIsASubmit: a drain and the quota refuse the batch that has it. What was made before is answered, and a batch without a callback is made.
func TestANewCallbackIsASubmit(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		create := func(id string, callback *yardv1.NewTask) error {
			return testkit.Err(asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: id, Callback: callback}))
		}
		callback := func() *yardv1.NewTask { return &yardv1.NewTask{Tasklist: "main", Type: "email", Group: "acme"} }
		r.quota(`"submit_tasks_per_s":3`)
		for range 3 {
			testkit.NoError(t, create("a", callback()))
			testkit.NoError(t, create("b", callback()))
		}
		r.log.fault = func(int, natslog.Msg) (bool, error) { return false, natslog.ErrFull }
		wantCode(t, create("full", callback()), fault.ResourceExhausted)
		r.log.heals()
		r.wantLeft(t, 1)
		wantOverQuota(t, create("c", callback()))
		testkit.NoError(t, create("a", callback()))
		testkit.NoError(t, create("plain", nil))
		stored := r.log.messages()
		r.quota(`"submit_bytes_per_s":1000`)
		large := callback()
		large.Payload = &yardv1.Payload{Data: []byte(`"` + strings.Repeat("x", 2000) + `"`)}
		testkit.NoError(t, create("large", large))
		wantOverQuota(t, create("c", callback()))
		r.quota("")
		for path, drain := range map[string]struct {
			catalog.Kind[*yardv1.Pause]
			domain, name string
		}{
			"/callback":          {catalog.Drains.Domains, "", "shop"},
			"/callback/tasklist": {catalog.Drains.Tasklists, "shop", "main"},
			"/callback/type":     {catalog.Drains.Types, "shop", "email"},
			"/callback/group":    {catalog.Drains.Groups, "shop", "acme"},
		} {
			stop(t, r.catalog, drain.Kind, drain.domain, drain.name, &yardv1.Pause{SinceMs: 1})
			wantAt(t, create("c", callback()), fault.FailedPrecondition, path)
			testkit.NoError(t, create("a", callback()))
			testkit.NoError(t, create("plain", nil))
			testkit.NoError(t, testkit.Err(drain.Delete(t.Context(), r.catalog.kv, drain.domain, drain.name, 0)))
		}
		testkit.Equal(t, "messages are stored", r.log.messages(), stored+1)
		testkit.NoError(t, create("c", callback()))
	})
}

// waits has an owner report so many tasks of shop.
func (r *rig) waits(t *testing.T, tasks int64) {
	t.Helper()
	r.Quotas.TakeStored(testkit.Encoded(t, &rpcv1.StoredTasks{Domains: []*rpcv1.DomainStored{{Domain: "shop", Tasks: tasks}}}))
}

// TestWhatIsStoredIsAnsweredAtTheQuotaOfWhatWaits: repeats are, and what is new is refused whole, whatever keys it has, until there is room.
func TestWhatIsStoredIsAnsweredAtTheQuotaOfWhatWaits(t *testing.T) {
	for _, counted := range []bool{true, false} {
		onKnowing(t, func(t *testing.T, r *rig) {
			r.quota(`"waiting_tasks":10`)
			unique := func(key string) *yardv1.SubmitRequest {
				req := withID(tasks(1), counted)
				req.Tasks[0].UniqueKey = key
				return req
			}
			all := []*yardv1.SubmitRequest{withID(tasks(1), counted), withID(ordered(keyIn(0), keyIn(1)), counted), unique("k")}
			send := func() {
				t.Helper()
				for _, req := range all {
					accepted(t, <-r.submit(t, req.CloneVT()))
					if counted {
						req.Tries++
					}
				}
			}
			send()
			time.Sleep(time.Second)
			r.waits(t, 10)
			stored := r.log.messages()
			send()
			fresh := []*yardv1.SubmitRequest{tasks(1), withID(tasks(500), counted), withID(ordered(keyIn(0), keyIn(1)), counted), unique("new")}
			for _, req := range fresh {
				wantOverQuota(t, (<-r.submit(t, req.CloneVT())).err)
			}
			callback := &yardv1.CreateBatchRequest{BatchId: "b", Callback: &yardv1.NewTask{Tasklist: "main", Type: "email"}}
			wantOverQuota(t, testkit.Err(asked(r, "shop", false, r.CreateBatch, callback)))
			testkit.Equal(t, "messages are stored", r.log.messages(), stored)
			r.waits(t, 0)
			for _, req := range fresh {
				if counted && req.RequestId != "" {
					req.Tries++
				}
				accepted(t, <-r.submit(t, req))
				time.Sleep(time.Second)
				r.waits(t, 0)
			}
			testkit.NoError(t, testkit.Err(asked(r, "shop", false, r.CreateBatch, callback)))
		})
	}
}
