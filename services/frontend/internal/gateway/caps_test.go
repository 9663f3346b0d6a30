package gateway

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// capped is a rig where the tasklist main has a cap.
func capped(t *testing.T, most int32, change ...func(*Deps)) *rig {
	t.Helper()
	r := newKnowingRig(t, change...)
	r.cap(t, "main", most)
	return r
}

func (r *rig) cap(t *testing.T, tasklist string, most int32) {
	t.Helper()
	testkit.NoError(t, testkit.Err(asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: tasklist, MaxQueued: most}})))
}

// reportQueued has the owner of each partition say what main has queued: n in the first, up to the end of its log.
func (r *rig) reportQueued(t *testing.T, n int64, groups ...*rpcv1.QueuedTasks) {
	t.Helper()
	r.log.mu.Lock()
	var loads []*rpcv1.HistoryLoad
	for p, msgs := range r.log.partitions {
		load := &rpcv1.HistoryLoad{Partition: int32(p)}
		for range ids.Lanes {
			load.Counted = append(load.Counted, uint64(len(msgs)))
		}
		if p == 0 && n > 0 {
			load.Queued = []*rpcv1.QueuedTasks{{Domain: "shop", Tasklist: "main", Tasks: n}, {Domain: "rival", Tasklist: "main", Tasks: 1000}}
		}
		if p == 0 {
			load.QueuedGroups = groups
		}
		loads = append(loads, load)
	}
	r.log.mu.Unlock()
	for _, load := range loads {
		r.TakeLoad(testkit.Encoded(t, load))
	}
}

// wantFull checks a refusal of a queue at its cap.
func wantFull(t *testing.T, o reply, path string) {
	t.Helper()
	if e := faultOf(t, o.err, fault.ResourceExhausted); e.Path != path || e.RetryAfter == 0 {
		t.Errorf("%v at %q, retry after %v; want %q", e, e.Path, e.RetryAfter, path)
	}
}

// wantTooMany checks the refusal of a request that no queue below its cap has room for: to repeat it is of no use.
func wantTooMany(t *testing.T, o reply, path string) {
	t.Helper()
	if e := faultOf(t, o.err, fault.InvalidArgument); e.Path != path || e.RetryAfter != 0 {
		t.Errorf("%v at %q, retry after %v; want %q", e, e.Path, e.RetryAfter, path)
	}
}

func (r *rig) wantQueued(t *testing.T, what string, want int64) {
	t.Helper()
	testkit.Equal(t, fmt.Sprintf("%s: are queued", what), r.QueuedTasks("shop", "main"), want)
}

// I2: a request with tasks for a queue at its cap is refused whole, and nothing else is.
func TestI2_AQueueAtItsCapRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := capped(t, 10)
		accepted(t, <-r.submit(t, tasks(6)))
		r.wantQueued(t, "stored", 6)
		accepted(t, <-r.submit(t, tasks(4)))
		stored := r.log.messages()
		wantFull(t, <-r.submit(t, tasks(1)), "/tasks/0/tasklist")
		mixed := tasks(4)
		for i := range 3 {
			mixed.Tasks[i].Tasklist = "other"
		}
		mixed.Tasks[1].Tasklist, mixed.Tasks[1].DelayMs = "main", 60_000
		wantFull(t, <-r.submit(t, mixed), "/tasks/3/tasklist")
		if now := r.log.messages(); now != stored {
			t.Errorf("%d messages are stored", now-stored)
		}
		mixed.Tasks[3].Tasklist = "other" // what is left for main is delayed
		accepted(t, <-r.submit(t, mixed))
		r.wantQueued(t, "delayed", 10)
		accepted(t, <-r.submitAs(t, "shop", &yardv1.SubmitRequest{Tasklist: "other", Tasks: tasks(50).Tasks}))

		r.reportQueued(t, 7)
		r.wantQueued(t, "reported", 7)
		wantFull(t, <-r.submit(t, tasks(4)), "/tasks/0/tasklist")
		accepted(t, <-r.submit(t, tasks(3)))
		wantFull(t, <-r.submit(t, tasks(1)), "/tasks/0/tasklist")
		r.reportQueued(t, 0)
		wantTooMany(t, <-r.submit(t, tasks(11)), "/tasks/0/tasklist")
		accepted(t, <-r.submit(t, tasks(10)))
		r.cap(t, "main", 0)
		accepted(t, <-r.submit(t, tasks(100)))
		testkit.Equal(t, "refusals are counted", r.metrics.Counter(signals.SubmitsRefused, signals.ReasonQueueFull).Value(), 5)
	})
}

// What is not stored, or not known to be, is not counted.
func TestWhatIsNotStoredIsNotQueued(t *testing.T) {
	for _, err := range []error{natslog.ErrNotStored, natslog.ErrOutcomeUnknown} {
		for _, id := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := capped(t, 10)
				r.log.fault = func(int, natslog.Msg) (bool, error) { return false, err }
				req := tasks(10)
				if id {
					req = withID(req, false)
				}
				done := r.submitBy(t, req, time.Second, 0)
				synctest.Wait()
				r.wantQueued(t, "on the way", 10)
				wantFull(t, <-r.submit(t, tasks(1)), "/tasks/0/tasklist")
				if o := <-done; o.err == nil {
					t.Error("accepted")
				}
				r.wantQueued(t, "given up", 0)
			})
		}
	}
}

// I1: a repeat of what is stored is answered with its results, whatever is queued by now; of what is not, it is refused.
func TestI1_ARepeatIsAnsweredThoughTheQueueIsFull(t *testing.T) {
	for _, after := range []time.Duration{0, 5 * time.Second, 2 * time.Minute} {
		for _, counted := range []bool{true, false} {
			for _, lost := range []bool{true, false} {
				inBubble(t, fmt.Sprintf("%v counted=%v lost=%v", after, counted, lost), func(t *testing.T) {
					r := capped(t, 10)
					req := withID(tasks(3), counted)
					if lost {
						r.log.fault = func(int, natslog.Msg) (bool, error) { return true, natslog.ErrOutcomeUnknown }
						wantCode(t, (<-r.submitBy(t, req, time.Second, 0)).err, fault.Unknown)
						r.log.heals()
					} else {
						accepted(t, <-r.submit(t, req))
					}
					r.reportQueued(t, 10)
					time.Sleep(after)
					if counted {
						req.Tries++
					}
					wantOnce(t, r.log, accepted(t, <-r.submit(t, req)))
					r.wantQueued(t, "as reported", 10)
					other := withID(tasks(3), counted)
					wantFull(t, <-r.submit(t, other), "/tasks/0/tasklist")
					if counted {
						other.Tries++
					}
					wantFull(t, <-r.submit(t, other), "/tasks/0/tasklist")
					r.reportQueued(t, 0)
					other.Tries = req.Tries
					accepted(t, <-r.submit(t, other))
					r.wantQueued(t, "stored", 3)
					r.reportQueued(t, 0)
					r.wantQueued(t, "reported", 0)
				})
			}
		}
	}
}

// I1: a request whose first append has no known outcome is not refused for a cap that comes meanwhile.
func TestI1_ACapDoesNotRefuseWhatMayBeStored(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		r.log.fault = func(int, natslog.Msg) (bool, error) { return false, natslog.ErrOutcomeUnknown }
		done := r.submit(t, withID(tasks(3), false))
		synctest.Wait()
		r.cap(t, "main", 1)
		time.Sleep(time.Second)
		r.log.heals()
		wantOnce(t, r.log, accepted(t, <-done))
		wantTooMany(t, <-r.submit(t, tasks(2)), "/tasks/0/tasklist")
	})
}

// However many clients flood it, a frontend alone never exceeds a cap.
func TestAFrontendNeverExceedsACap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := capped(t, 100)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for i := range 10 {
					o := <-r.submit(t, tasks(1+i%3))
					if o.err != nil && fault.CodeOf(o.err) != fault.ResourceExhausted {
						t.Error(o.err)
					}
				}
			})
		}
		all.Wait()
		if n := len(r.log.tasks(t)); n > 100 || n < 98 {
			t.Errorf("%d tasks are stored", n)
		}
	})
}

func TestCappedTasklistsOfADomainAreBounded(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		put := func(name string, most int32) error {
			_, err := asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: name, MaxQueued: most}})
			return err
		}
		for i := range validate.CappedMax {
			wantCode(t, put(fmt.Sprint("l", i), 1), "")
		}
		wantAt(t, put("one-more", 1), fault.FailedPrecondition, "/tasklist/max_queued")
		wantCode(t, put("one-more", 0), "")
		wantAt(t, put("one-more", 1), fault.FailedPrecondition, "/tasklist/max_queued")
		wantCode(t, put("l7", 9), "")
		wantCode(t, put("l7", 0), "")
		wantCode(t, put("one-more", 1), "")
	})
}

// I2: a request with tasks of a group at its cap is refused whole, at the path of the first; other groups, and tasks without one, are accepted. Both
// caps hold together.
func TestI2_AGroupAtItsCapRefuses(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		settings := &yardv1.Tasklist{Name: "main", MaxQueuedPerGroup: 10, MaxQueued: 40}
		testkit.NoError(t, testkit.Err(asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: settings})))
		of := func(groups ...string) *yardv1.SubmitRequest {
			req := tasks(len(groups))
			for i, g := range groups {
				req.Tasks[i].Group = g
			}
			return req
		}
		many := func(n int, group string) *yardv1.SubmitRequest { return of(slices.Repeat([]string{group}, n)...) }
		accepted(t, <-r.submit(t, many(8, "acme")))
		mixed := of("b", "acme", "", "acme")
		accepted(t, <-r.submit(t, mixed))
		stored := r.log.messages()
		o := <-r.submit(t, of("b", "", "acme"))
		wantFull(t, o, "/tasks/2/group")
		if !strings.Contains(o.err.Error(), `group "acme"`) || !strings.Contains(o.err.Error(), "max_queued_per_group is 10") {
			t.Error(o.err)
		}
		delayed := many(1, "acme")
		delayed.Tasks[0].DelayMs = 60_000
		accepted(t, <-r.submit(t, delayed))
		accepted(t, <-r.submit(t, many(9, "b")))
		wantFull(t, <-r.submit(t, many(1, "b")), "/tasks/0/group")
		wantTooMany(t, <-r.submit(t, many(11, "c")), "/tasks/0/group")
		other := many(50, "acme")
		other.Tasklist = "other"
		accepted(t, <-r.submit(t, other))
		testkit.Equal(t, "messages are stored", r.log.messages()-stored, 3)
		accepted(t, <-r.submit(t, many(19, ""))) // 40 together
		wantFull(t, <-r.submit(t, many(1, "c")), "/tasks/0/tasklist")

		r.reportQueued(t, 7, &rpcv1.QueuedTasks{Domain: "shop", Tasklist: "main", Group: "acme", Tasks: 7}, &rpcv1.QueuedTasks{Domain: "shop", Tasklist: "other", Group: "b", Tasks: 70})
		wantFull(t, <-r.submit(t, many(4, "acme")), "/tasks/0/group")
		accepted(t, <-r.submit(t, many(3, "acme")))
		accepted(t, <-r.submit(t, many(10, "b")))
		r.reportQueued(t, 0)
		settings.MaxQueuedPerGroup, settings.Revision = 0, 0
		testkit.NoError(t, testkit.Err(asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: settings})))
		accepted(t, <-r.submit(t, many(30, "acme")))
	})
}

// Caps per group are bounded.
func TestCapsPerGroupAreRefused(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		put := func(name string, most int32) error {
			_, err := asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: name, MaxQueuedPerGroup: most}})
			return err
		}
		const path = "/tasklist/max_queued_per_group"
		for _, most := range []int32{-1, validate.QueuedMax + 1} {
			wantAt(t, put("main", most), fault.InvalidArgument, path)
		}
		for i := range validate.CappedMax {
			testkit.NoError(t, put(fmt.Sprint("l", i), validate.QueuedMax))
		}
		wantAt(t, put("main", 1), fault.FailedPrecondition, path)
		testkit.Check(t, put("l7", 1))
	})
}
