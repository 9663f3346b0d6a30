package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI1_NothingIsLostOrDoubled drives two frontends on one log that stores or not, now or minutes later, and
// acknowledges or not, as it likes. Requests are merged, and repeated at either frontend until accepted, by clients that count
// their tries and those that do not; frontends pause in the middle of a request. In the end every accepted task
// counts exactly once, and nothing else counts twice.
func TestI1_NothingIsLostOrDoubled(t *testing.T) {
	random := testkit.Seed(t)
	for range 60 {
		seed := random.Uint64()
		synctest.Test(t, func(t *testing.T) { loseAndRepeat(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func loseAndRepeat(t *testing.T, random *rand.Rand) {
	var mu sync.Mutex
	choose := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	var paused atomic.Bool
	// Whatever asks an owner may be stopped for long before and after.
	slow := func(d *Deps) {
		get := d.Owners.HistoryGet
		d.Owners.HistoryGet = func(ctx context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
			resp, err := get(ctx, p, req)
			if paused.Load() && choose(40) == 0 {
				time.Sleep(time.Duration(choose(40_000)) * time.Millisecond)
			}
			return resp, err
		}
	}
	inOrder := choose(2) == 1
	a := newKnowingRig(t, slow)
	b := newKnowingRig(t, func(d *Deps) { d.History = a.log }, slow)
	b.log = a.log
	frontends := []*rig{a, b}
	testkit.NoError(t, testkit.Err(asked(a, "shop", false, a.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})))
	paused.Store(true)
	a.log.fault = a.log.moody(choose)
	var all sync.WaitGroup
	want, none := map[string]bool{}, map[string]bool{} // marks of accepted tasks, and of those that are never to be stored
	for n := range 20 {
		all.Go(func() {
			time.Sleep(time.Duration(choose(3000)) * time.Millisecond)
			req := markedTasks(n, choose)
			for _, task := range req.Tasks {
				if inOrder && n%2 == 0 { // in one partition, or in several
					task.OrderKey = fmt.Sprint("account ", choose(3))
				}
				if n%3 == 0 {
					task.BatchId = "a"
				}
			}
			o, ok := persistent(t, frontends, req, choose)
			mu.Lock()
			defer mu.Unlock()
			for i, task := range req.Tasks {
				if ok {
					stored := o.err == nil && o.resp.(*yardv1.SubmitResponse).Results[i].Outcome == yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED
					want[string(task.Payload.Data)], none[string(task.Payload.Data)] = stored, !stored
				}
			}
		})
	}
	time.Sleep(time.Duration(choose(20_000)) * time.Millisecond)
	had := closeAtLast(t, frontends, choose)
	all.Wait()
	paused.Store(false)
	time.Sleep(4 * time.Minute) // all that was on its way has come
	if len(want) == 0 {
		t.Error("nothing was accepted")
	}
	wantMarks(t, a.log.marks(), want, none)
	testkit.Equal(t, "members behind the close", len(a.log.members())-len(had), 0)
	a.log.wantInLine(t)
}

// closeAtLast closes batch a, however often it takes, and returns its members then.
func closeAtLast(t *testing.T, frontends []*rig, choose func(int) int) map[ids.TaskID]bool {
	t.Helper()
	for {
		r := frontends[choose(len(frontends))]
		switch _, err := asked(r, "shop", false, r.CloseBatch, &yardv1.CloseBatchRequest{BatchId: "a"}); fault.CodeOf(err) {
		case "":
			return r.log.members()
		case fault.Unavailable, fault.Unknown:
		default:
			t.Errorf("the close got %v", err)
			return nil
		}
	}
}

// members are the tasks of batches that count.
func (l *memLog) members() map[ids.TaskID]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[ids.TaskID]bool{}
	for p, msgs := range l.partitions {
		for i, m := range submits(msgs) {
			for _, r := range batchOf(m.Data).Tasks {
				if r.BatchId != "" && (r.WithinMs == 0 || l.storedAt[p][i].Sub(ids.TaskID(r.Id).Time()) <= time.Duration(r.WithinMs)*time.Millisecond) {
					all[ids.TaskID(r.Id)] = true
				}
			}
		}
	}
	return all
}

// wantInLine checks that each task with an order key lies on the lane of those, under its domain, in the partition of its key.
func (l *memLog) wantInLine(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, msgs := range l.partitions {
		for _, m := range submits(msgs) {
			lane, _ := topology.LaneOf(p, m.Subject)
			for _, r := range batchOf(m.Data).Tasks {
				keyed := r.Order != nil
				if keyed != (lane == ids.LaneKeyed) || keyed && (topology.PlaceOfSubmit(p, m.Subject).Domain() != r.Domain || topology.OrderKeyPartition(r.Domain, r.Order.Key, topology.Partitioning{History: rigPartitions}) != p) {
					t.Errorf("a task with the order key %q lies in partition %d, %s", r.Order.GetKey(), p, m.Subject)
				}
			}
		}
	}
}

// wantMarks checks that what was accepted was found once, and nothing twice, nor what is never to be stored.
func wantMarks(t *testing.T, found map[string]int, want, none map[string]bool) {
	t.Helper()
	for mark, stored := range want {
		if stored && found[mark] == 0 {
			t.Errorf("task %s was accepted and is lost", mark)
		}
	}
	for mark, n := range found {
		if none[mark] {
			t.Errorf("task %s is stored, and its client was informed that it never will be", mark)
		}
		if n > 1 {
			t.Errorf("task %s is stored %d times", mark, n)
		}
	}
}

// moody is a fault that stores or not, now or minutes later, and acknowledges or not; l.mu is held.
func (l *memLog) moody(choose func(int) int) func(p int, m natslog.Msg) (bool, error) {
	return func(p int, m natslog.Msg) (bool, error) {
		switch choose(8) {
		case 0, 1:
			return true, natslog.ErrOutcomeUnknown
		case 2, 3:
			return false, natslog.ErrOutcomeUnknown
		case 4: // it is still on its way
			time.AfterFunc(time.Duration(choose(200_000))*time.Millisecond, func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				if _, taken := l.find(p, m.MsgID); !taken {
					_ = l.storeAtomic(p, []natslog.Msg{m}) // it may be refused by then
				}
			})
			return false, natslog.ErrOutcomeUnknown
		case 5:
			return false, natslog.ErrNotStored
		}
		return true, nil
	}
}

// marks are the payloads of the tasks that count, with how often each does.
func (l *memLog) marks() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]int{}
	for p, msgs := range l.partitions {
		for i, m := range submits(msgs) {
			for _, r := range batchOf(m.Data).Tasks {
				if r.WithinMs == 0 || l.storedAt[p][i].Sub(ids.TaskID(r.Id).Time()) <= time.Duration(r.WithinMs)*time.Millisecond {
					all[string(r.Payload)]++
				}
			}
		}
	}
	return all
}

// markedTasks is a request whose payloads tell each task from all others.
func markedTasks(n int, choose func(int) int) *yardv1.SubmitRequest {
	req := tasks(1 + choose(3))
	if choose(4) == 0 {
		req.Tasks = append(req.Tasks, &yardv1.NewTask{Type: "x", Tasklist: "other"})
	}
	for i, task := range req.Tasks {
		task.Payload = &yardv1.Payload{Data: fmt.Appendf(nil, `"%d-%d"`, n, i)}
	}
	return req
}

// persistent submits req at any frontend, with a deadline that is often too short, and repeats it, sometimes before it is
// answered. It returns the last answer; ok is false where there was none to rely on.
func persistent(t *testing.T, frontends []*rig, req *yardv1.SubmitRequest, choose func(int) int) (o reply, ok bool) {
	withID(req, choose(2) == 0)
	for range 100 {
		o, ok := submitOnce(frontends, req, choose)
		if !ok {
			continue
		}
		switch code := fault.CodeOf(o.err); code {
		case "", fault.FailedPrecondition: // stored; or not, nor will be
			return o, true
		case fault.Unknown, fault.Unavailable:
		default:
			t.Errorf("got %v", o.err)
			return o, false
		}
	}
	return o, false
}

// submitOnce submits req at any frontend, with a deadline that is often too short; ok is false if its answer is lost.
func submitOnce(frontends []*rig, req *yardv1.SubmitRequest, choose func(int) int) (o reply, ok bool) {
	r := frontends[choose(len(frontends))]
	got := make(chan reply, 1)
	c := r.call()
	c.Deadline = c.Received.Add(time.Duration(1+choose(12_000)) * time.Millisecond)
	r.Submit(c, req.CloneVT(), func(resp codec.Message, err error) { got <- reply{resp: resp, err: err} })
	if req.Tries > 0 {
		req.Tries++
	}
	patience := time.NewTimer(time.Duration(choose(15_000)) * time.Millisecond)
	defer patience.Stop()
	select {
	case <-patience.C:
		return o, false
	case o = <-got:
		return o, true
	}
}
