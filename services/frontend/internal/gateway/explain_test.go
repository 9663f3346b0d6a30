package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// explained is a rig whose history has one task, and what the owners are asked.
type explained struct {
	*rig
	id    ids.TaskID
	asked []string
}

// shardsSay are the answers of the shards about a task; nil = that one is silent.
type shardsSay [rigShards]*rpcv1.DescribeShardResponse

// freeWorker is a shard where a poll waits.
func freeWorker() *rpcv1.DescribeShardResponse {
	return &rpcv1.DescribeShardResponse{Pollers: 1, Takers: 1, Polled: true, KnownForMs: 3_600_000}
}

func newExplained(t *testing.T, answer *rpcv1.GetTaskResponse, say shardsSay, change ...func(*Deps)) *explained {
	t.Helper()
	e := &explained{id: ids.NewTaskID(time.Now(), 1, 1)}
	task := answer.Task
	task.TaskId, task.Domain, task.Tasklist, task.Type = e.id.String(), "shop", "mail", "send"
	e.rig = newRig(t, append([]func(*Deps){func(d *Deps) {
		d.Owners.HistoryGet = func(_ context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
			e.asked = append(e.asked, fmt.Sprint("get ", p))
			if ids.TaskID(req.TaskId) != e.id || req.Domain != "shop" {
				return &rpcv1.GetTaskResponse{}, nil
			}
			return &rpcv1.GetTaskResponse{Task: task.CloneVT(), Lane: answer.Lane}, nil
		}
		d.Owners.MatchingDescribe = func(_ context.Context, m int, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
			if req.Domain != "shop" || req.Tasklist != "mail" || req.Explain.GetType() != "send" || req.Explain.GetGroup() != task.Group || req.Explain.GetHolders() != 10 {
				return nil, fault.New(fault.Internal, "asked for %v", req)
			}
			if say[m] == nil {
				return nil, fault.New(fault.Unavailable, "away")
			}
			return say[m].CloneVT(), nil
		}
	}}, change...)...)
	return e
}

// why is the answer, and its reasons as "CODE ref".
func (e *explained) why(t *testing.T) (*yardv1.ExplainResponse, string) {
	t.Helper()
	resp := answerOf[*yardv1.ExplainResponse](t, e.rig, "shop", true, e.Explain, &yardv1.ExplainRequest{TaskId: e.id.String()})
	var all []string
	for _, r := range resp.Reasons {
		all = append(all, strings.TrimSpace(r.Code+" "+r.Ref))
	}
	return resp, strings.Join(all, ", ")
}

// TestExplainJoinsWhatOwnersKnow: the shards' limits with their holders, the pauses of the catalog and the state of the task. It does not send the payload.
func TestExplainJoinsWhatOwnersKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		holder := ids.NewTaskID(time.Now(), 0, 7).String()
		limit := func(slots int32, closed bool, holders ...*yardv1.SlotHolder) *rpcv1.ShardLimit {
			return &rpcv1.ShardLimit{Closed: closed, Use: &yardv1.LimitUse{Ref: "type/send", MaxConcurrency: 2, SlotsInUse: slots, Running: 1, WaitingTasks: 3, Holders: holders}}
		}
		first, second := freeWorker(), freeWorker()
		first.Top = []*rpcv1.ShardLimit{limit(2, false, &yardv1.SlotHolder{TaskId: holder, HeldForMs: 50})}
		second.Top = []*rpcv1.ShardLimit{limit(1, true), {Closed: true, NextStartMs: 250, Use: &yardv1.LimitUse{Ref: "rate/domain"}}, {Use: &yardv1.LimitUse{Ref: "rate/type/send"}}}
		due := time.Now().Add(time.Minute).UnixMilli()
		e := newExplained(t, &rpcv1.GetTaskResponse{Task: &yardv1.Task{
			State: yardv1.TaskState_TASK_STATE_BACKOFF, Failures: 1, DueAtMs: due, ErrorType: "smtp.452", Group: "acme", Payload: &yardv1.Payload{Data: []byte("1")},
			Events: []*yardv1.TaskEvent{{AtMs: 5}},
		}}, shardsSay{first, second})
		stop(t, e.catalog, catalog.Pauses.Tasklists, "shop", "mail", &yardv1.Pause{By: "ann"})
		stop(t, e.catalog, catalog.Pauses.Tasklists, "shop", "other", &yardv1.Pause{})
		stop(t, e.catalog, catalog.Pauses.Types, "shop", "send", &yardv1.Pause{UntilMs: 1})
		stop(t, e.catalog, catalog.Pauses.Groups, "shop", "acme", &yardv1.Pause{})
		resp, got := e.why(t)
		testkit.MustEqual(t, "reasons", got, "BACKOFF, PAUSED tasklist/mail, PAUSED group/acme, RATE rate/domain, LIMIT_FULL type/send")
		if r := resp.Reasons[0]; r.UntilMs != due || r.SinceMs != 5 || r.About {
			t.Errorf("backoff: %v", r)
		}
		if r := resp.Reasons[3]; r.UntilMs != time.Now().UnixMilli()+250 || !r.About {
			t.Errorf("rate: %v", r)
		}
		if r := resp.Reasons[4]; r.Limit.SlotsInUse != 2 || r.Waiting != 6 || len(r.Limit.Holders) != 1 || r.Limit.Holders[0].TaskId != holder {
			t.Errorf("limit: %v", r)
		}
		if task := resp.Task; task.Payload != nil || task.Events != nil || task.TaskId != e.id.String() {
			t.Errorf("task: %v", task)
		}
	})
}

// TestExplainOfATaskThatDoesNotWait asks no one but its owner.
func TestExplainOfATaskThatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for state, want := range map[yardv1.TaskState]string{
			yardv1.TaskState_TASK_STATE_RUNNING: "RUNNING", yardv1.TaskState_TASK_STATE_COMPLETED: "FINISHED", yardv1.TaskState_TASK_STATE_CANCELLED: "FINISHED",
		} {
			e := newExplained(t, &rpcv1.GetTaskResponse{Task: &yardv1.Task{State: state}}, shardsSay{})
			_, got := e.why(t)
			testkit.Equal(t, state.Name(), got+", "+strings.Join(e.asked, " "), want+", get 1")
		}
	})
}

// TestExplainSaysWhatIsNotKnown: without the shard of the tasklist neither limits nor workers are known. Another silent shard hides holders only.
func TestExplainSaysWhatIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serving := ids.MatchingShard("shop", "mail", 0, rigShards)
		say := shardsSay{}
		say[serving] = freeWorker()
		e := newExplained(t, &rpcv1.GetTaskResponse{Task: &yardv1.Task{State: yardv1.TaskState_TASK_STATE_READY}}, say)
		_, got := e.why(t)
		testkit.Equal(t, "without another shard", got, "")
		say[serving], say[1-serving] = nil, &rpcv1.DescribeShardResponse{}
		e = newExplained(t, &rpcv1.GetTaskResponse{Task: &yardv1.Task{State: yardv1.TaskState_TASK_STATE_READY}}, say)
		_, got = e.why(t)
		testkit.Equal(t, "without the shard of the tasklist", got, "MATCHING_SILENT")
	})
}

// TestExplainNamesTheQueue: the narrowest one of the lane that has the task. How much waits in one that others share is not said.
func TestExplainNamesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queues := []*yardv1.Queue{{Lane: "p3", Unread: 9}, {Lane: "p2", Unread: 8}, {Lane: "p3", Domain: "shop", Unread: 7, LowClass: true}, {Lane: "p3", Domain: "shop", Tasklist: "other"}}
		for lane, want := range map[string]string{"p3": "NOT_ADMITTED p3/shop 7", "p2": "NOT_ADMITTED p2 0"} {
			e := newExplained(t, &rpcv1.GetTaskResponse{Lane: lane, Task: &yardv1.Task{State: yardv1.TaskState_TASK_STATE_QUEUED}}, shardsSay{freeWorker(), freeWorker()}, func(d *Deps) {
				d.Owners.HistoryDescribe = func(_ context.Context, p int, req *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error) {
					if p != 1 || req.Domain != "shop" || req.Queues == 0 {
						return nil, fault.New(fault.Internal, "asked for %v", req)
					}
					return &rpcv1.DescribePartitionResponse{Queues: &yardv1.PartitionQueues{Queues: queues}}, nil
				}
			})
			resp, got := e.why(t)
			testkit.Equal(t, lane, fmt.Sprint(got, " ", resp.Reasons[0].Waiting), want)
		}
	})
}

// TestExplainNamesTheFirstTaskOfAnOrderKey: as the key's partition has it. A task whose turn has come meanwhile waits for none.
func TestExplainNamesTheFirstTaskOfAnOrderKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := ids.NewTaskID(time.Now(), 1, 5).String()
		head := &yardv1.Task{TaskId: first, State: yardv1.TaskState_TASK_STATE_RUNNING, Worker: "w"}
		e := newExplained(t, &rpcv1.GetTaskResponse{Task: &yardv1.Task{State: yardv1.TaskState_TASK_STATE_READY, OrderKey: "k", AwaitsTurn: true}}, shardsSay{freeWorker(), freeWorker()}, func(d *Deps) {
			d.Owners.HistoryKeys = func(_ context.Context, p int, req *rpcv1.ListKeysRequest) (*rpcv1.ListKeysResponse, error) {
				if p != topology.OrderKeyPartition("shop", "k", d.Partitioning) || req.OrderKey != "k" || req.Domain != "shop" {
					return nil, fault.New(fault.Internal, "asked for %v", req)
				}
				return &rpcv1.ListKeysResponse{Keys: []*yardv1.OrderKey{{OrderKey: "k", Waiting: 3, Head: head}}}, nil
			}
		})
		resp, got := e.why(t)
		testkit.Equal(t, "reasons", got, "BEHIND_ORDER_KEY k")
		testkit.Equal(t, "the first task, and those behind it", fmt.Sprint(resp.Reasons[0].TaskId, resp.Reasons[0].Waiting), first+"3")
		head.TaskId = e.id.String()
		_, got = e.why(t)
		testkit.Equal(t, "when its turn has come", got, "")
	})
}

// TestExplainNamesWorkers: who polled last, and the drained ones that poll the tasklist.
func TestExplainNamesWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		poller := func(name string, ago int64) *yardv1.Poller {
			return &yardv1.Poller{Worker: name, SeenAgoMs: ago, Version: "v1"}
		}
		ready := func() *rpcv1.GetTaskResponse {
			return &rpcv1.GetTaskResponse{Task: &yardv1.Task{State: yardv1.TaskState_TASK_STATE_READY}}
		}
		for name, c := range map[string]struct {
			say  shardsSay
			want string
		}{
			"none":       {shardsSay{{}, {}}, "NO_WORKER <nil>"},
			"other type": {shardsSay{{Pollers: 1, LastPoller: poller("a", 9)}, {Pollers: 1, LastPoller: poller("b", 5)}}, "NO_WORKER_FOR_TYPE b"},
			"busy":       {shardsSay{{Pollers: 1, Takers: 1, LastPoller: poller("a", 9)}, {Pollers: 1, LastPoller: poller("b", 5)}}, "NO_WORKER_FREE a"},
			"busy, too":  {shardsSay{{Pollers: 1, LastPoller: poller("b", 5)}, {Pollers: 1, Takers: 1, LastPoller: poller("a", 9)}}, "NO_WORKER_FREE a"},
		} {
			resp, got := newExplained(t, ready(), c.say).why(t)
			last := "<nil>"
			if p := resp.Reasons[0].LastPoller; p != nil {
				last = p.Worker
			}
			testkit.Equal(t, name, got+" "+last, c.want)
		}
		worker := func(id, tasklist string) *yardv1.LiveWorker {
			return &yardv1.LiveWorker{WorkerId: id, Worker: "mailer", Tasklists: []string{tasklist}}
		}
		e := newExplained(t, ready(), shardsSay{{}, {}}, workersOf(nil, []*yardv1.LiveWorker{worker(workerOne, "mail"), worker(workerTwo, "other")}, nil))
		_, got := e.why(t)
		testkit.Equal(t, "before a drain", got, "NO_WORKER")
		e.catalog.drainWorkers(t, "shop", 5, workerOne, workerTwo)
		resp, got := e.why(t)
		testkit.MustEqual(t, "drained", got, "NO_WORKER, DRAINED "+workerOne)
		testkit.Equal(t, "since", resp.Reasons[1].SinceMs, 5)
	})
}

// I14: only the domain of the task gets an answer.
func TestI14_ExplainIsOfTheOwnDomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExplained(t, &rpcv1.GetTaskResponse{Task: &yardv1.Task{State: yardv1.TaskState_TASK_STATE_READY}}, shardsSay{freeWorker(), freeWorker()})
		e.catalog.kv.Store(catalog.Domains.Key("", "books"), `{"name":"books"}`)
		for domain, id := range map[string]string{"books": e.id.String(), "shop": ids.NewTaskID(time.Now(), rigPartitions, 1).String(), "none": e.id.String()} {
			_, err := asked(e.rig, domain, true, e.Explain, &yardv1.ExplainRequest{TaskId: id})
			testkit.Equal(t, domain, fault.CodeOf(err), fault.NotFound)
		}
		_, err := asked(e.rig, "shop", true, e.Explain, &yardv1.ExplainRequest{TaskId: "x"})
		testkit.Equal(t, "a malformed id", fault.CodeOf(err), fault.InvalidArgument)
	})
}
