package gateway

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func (r *rig) get(t *testing.T, id ids.TaskID, wait time.Duration) <-chan reply {
	got := sent(t, r, r.Get, &yardv1.GetRequest{TaskId: id.String(), WaitMs: wait.Milliseconds()})
	return got
}

func TestGetIsRetriedUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		r := newRig(t, func(d *Deps) {
			d.Owners.HistoryGet = func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				asked++
				return nil, fault.New(fault.Unavailable, "nobody")
			}
		}).running(t)
		began := time.Now()
		got := <-r.get(t, ids.NewTaskID(began, 1, 1), 0)
		wantCode(t, got.err, fault.Unavailable)
		if got.at.Sub(began) != r.config.RequestTimeout || asked < 10 || asked > 200 {
			t.Errorf("asked %d times in %v", asked, got.at.Sub(began))
		}
	})
}

func TestGetWaitsThroughEveryHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		since := func() time.Duration { return time.Since(began) }
		seen := func(s yardv1.TaskState) (*rpcv1.GetTaskResponse, error) {
			return &rpcv1.GetTaskResponse{Task: &yardv1.Task{State: s}}, nil
		}
		asked := 0
		r := newRig(t, func(d *Deps) {
			// Waiting for 3 s, then nowhere for a moment, then in history, finished at 8 s.
			d.Owners.TimerGet = func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				if since() < 3*time.Second {
					return seen(yardv1.TaskState_TASK_STATE_WAITING)
				}
				return &rpcv1.GetTaskResponse{}, nil
			}
			d.Owners.HistoryGet = func(ctx context.Context, _ int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				asked++
				if since() < 4*time.Second {
					return &rpcv1.GetTaskResponse{}, nil
				}
				if req.WaitMs > 0 {
					backoff.Sleep(ctx, 8*time.Second-since())
					return seen(yardv1.TaskState_TASK_STATE_COMPLETED)
				}
				return seen(yardv1.TaskState_TASK_STATE_RUNNING)
			}
		}).running(t)
		got := <-r.get(t, ids.NewTaskID(began, 1, 1), 30*time.Second)
		if got.err != nil || got.resp.(*yardv1.GetResponse).Task.State != yardv1.TaskState_TASK_STATE_COMPLETED {
			t.Fatalf("got %v %v", got.resp, got.err)
		}
		if took := got.at.Sub(began); took != 8*time.Second || asked > 60 {
			t.Errorf("took %v and %d questions", took, asked)
		}
	})
}

func TestGetEndsItsWaitWithTheStateSoFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) {
			d.Owners.HistoryGet = func(ctx context.Context, _ int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				if req.WaitMs > 0 {
					backoff.Sleep(ctx, time.Duration(req.WaitMs)*time.Millisecond)
				}
				return &rpcv1.GetTaskResponse{Task: &yardv1.Task{State: yardv1.TaskState_TASK_STATE_RUNNING}}, nil
			}
		}).running(t)
		began := time.Now()
		got := <-r.get(t, ids.NewTaskID(began, 1, 1), 20*time.Second)
		if got.err != nil || got.resp.(*yardv1.GetResponse).Task.State != yardv1.TaskState_TASK_STATE_RUNNING {
			t.Fatalf("got %v %v", got.resp, got.err)
		}
		if took := got.at.Sub(began); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestQueriesAreBoundedAndPanicsAreContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		r := newRig(t, func(d *Deps) {
			d.Config.QueriesMax = 2
			d.Owners.HistoryGet = func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				<-open
				panic("a defect")
			}
		}).running(t)
		id := ids.NewTaskID(time.Now(), 1, 1)
		first, second := r.get(t, id, 0), r.get(t, id, 0)
		wantCode(t, (<-r.get(t, id, 0)).err, fault.ResourceExhausted)
		close(open)
		wantCode(t, (<-first).err, fault.Internal)
		wantCode(t, (<-second).err, fault.Internal)
		wantCode(t, (<-r.get(t, id, 0)).err, fault.Internal)
	})
}

func TestListIsWholeOrAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) {
			d.Owners.TimerList = func(_ context.Context, p int, _ *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
				if p == 1 {
					return nil, fault.New(fault.Unavailable, "nobody")
				}
				return &rpcv1.ListTasksResponse{}, nil
			}
		}).running(t)
		got := sent(t, r, r.List, &yardv1.ListRequest{})
		wantCode(t, (<-got).err, fault.Unavailable)
	})
}

// TestAListOfAnOrderKeyAsksItsPartition, and the timer's of that: delayed tasks wait there, and it lists those apart that are not due soon. What blocks its key has begun.
func TestAListOfAnOrderKeyAsksItsPartition(t *testing.T) {
	const key = "account 7"
	p := topology.OrderKeyPartition("shop", key, topology.Partitioning{History: rigPartitions})
	for blocked, want := range map[bool]string{false: fmt.Sprintf("[history %d timer %d timer %d]", p, p, p), true: fmt.Sprintf("[history %d]", p)} {
		synctest.Test(t, func(t *testing.T) {
			asked := make(chan string, 10)
			list := func(who string) func(context.Context, int, *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
				return func(_ context.Context, p int, _ *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
					asked <- fmt.Sprintf("%s %d", who, p)
					return &rpcv1.ListTasksResponse{}, nil
				}
			}
			r := newRig(t, func(d *Deps) { d.Owners.HistoryList, d.Owners.TimerList = list("history"), list("timer") }).running(t)
			if o := <-sent(t, r, r.List, &yardv1.ListRequest{OrderKey: key, Blocked: blocked}); o.err != nil {
				t.Fatal(o.err)
			}
			close(asked)
			var all []string
			for s := range asked {
				all = append(all, s)
			}
			slices.Sort(all)
			testkit.Equal(t, "were asked", fmt.Sprint(all), want)
		})
	}
}
