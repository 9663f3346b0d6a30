package frontend

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var farPast = time.UnixMilli(1000)

// serve answers calls with f for as long as the test runs.
func serve[Req any, PReq interface {
	*Req
	natsrpc.Message
}](s *stage, subject string, f func(PReq) (natsrpc.Message, error)) {
	s.t.Helper()
	testkit.NoError(s.t, testkit.Err(natsrpc.Serve[Req, PReq](s.client, subject, nil, slog.New(slog.DiscardHandler), func(_ context.Context, req PReq) (natsrpc.Message, error) { return f(req) })))
}

// history answers the event batches of all partitions with OK, as the owners
// would, and counts them.
func (s *stage) history(batches *atomic.Int64) {
	s.t.Helper()
	for p := range partitioning.History {
		testkit.NoError(s.t, testkit.Err(s.client.Subscribe(topology.EventRequests(p), func(m *nats.Msg) {
			var b logv1.EventBatch
			if err := b.UnmarshalVT(m.Data); err != nil {
				s.t.Error(err)
				return
			}
			batches.Add(1)
			v := &logv1.VerdictBatch{RequestId: b.RequestId}
			for _, e := range b.Events {
				v.Verdicts = append(v.Verdicts, &logv1.EventVerdict{Message: strconv.FormatUint(e.Nonce, 10)})
			}
			data, err := v.MarshalVT()
			testkit.Check(s.t, err)
			testkit.Check(s.t, s.client.Publish(b.ReplyTo, data))
		})))
	}
}

func TestOutcomesGetHistorysVerdicts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var batches atomic.Int64
	s.history(&batches)
	req := &yardv1.HeartbeatRequest{}
	for i := range 1000 {
		id := ids.NewTaskID(farPast, i%partitioning.History, uint64(i))
		req.Tasks = append(req.Tasks, &yardv1.Beat{TaskId: id.String(), Token: s.tokens.Print(id, ids.Token{Nonce: uint64(i + 1)})})
	}
	resp := &yardv1.OutcomeResponse{}
	s.must(topology.API("shop", "tasks.heartbeat"), req, resp)
	for i, v := range resp.Verdicts {
		if v.Code != "OK" || v.TaskId != req.Tasks[i].TaskId || v.Message != strconv.Itoa(i+1) {
			t.Fatalf("entry %d: %v", i, v)
		}
	}
	testkit.Equal(t, "batches", batches.Load(), int64(partitioning.History))
}

func TestGetFindsATaskWhereverItIs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	inHistory, inTimer := ids.NewTaskID(farPast, 0, 1), ids.NewTaskID(farPast, 1, 2)
	for p := range partitioning.History {
		holds := func(id ids.TaskID) func(*rpcv1.GetTaskRequest) (natsrpc.Message, error) {
			return func(r *rpcv1.GetTaskRequest) (natsrpc.Message, error) {
				if string(r.TaskId) == string(id[:]) && r.Domain == "shop" {
					return &rpcv1.GetTaskResponse{Task: &yardv1.Task{TaskId: id.String()}}, nil
				}
				return &rpcv1.GetTaskResponse{}, nil
			}
		}
		serve(s, topology.HistoryCall(p, "get"), holds(inHistory))
		serve(s, topology.TimerCall(p, "get"), holds(inTimer))
	}
	for _, id := range []ids.TaskID{inHistory, inTimer} {
		resp := &yardv1.GetResponse{}
		s.must(topology.API("shop", "tasks.get"), &yardv1.GetRequest{TaskId: id.String()}, resp)
		if resp.Task.TaskId != id.String() {
			t.Errorf("got %v", resp.Task)
		}
	}
	e := s.ask(topology.API("shop", "tasks.get"), &yardv1.GetRequest{TaskId: ids.NewTaskID(farPast, 1, 9).String()}, nil)
	testkit.Code(t, "error", e, fault.NotFound)
}

func TestSubmitWaitsForTheResult(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var asked atomic.Int64
	for p := range partitioning.History {
		serve(s, topology.HistoryCall(p, "get"), func(r *rpcv1.GetTaskRequest) (natsrpc.Message, error) {
			id, err := ids.TaskIDFromBytes(r.TaskId)
			if asked.Add(1) < 3 || err != nil { // not read yet
				return &rpcv1.GetTaskResponse{}, err
			}
			if r.WaitMs == 0 {
				t.Error("history was not asked to wait")
			}
			return &rpcv1.GetTaskResponse{Task: &yardv1.Task{TaskId: id.String(), State: yardv1.TaskState_TASK_STATE_COMPLETED}}, nil
		})
		serve(s, topology.TimerCall(p, "get"), func(*rpcv1.GetTaskRequest) (natsrpc.Message, error) { return &rpcv1.GetTaskResponse{}, nil })
	}
	req, resp := tasks(1), &yardv1.SubmitResponse{}
	req.Wait = true
	s.must(topology.API("shop", "tasks.submit"), req, resp)
	if resp.Task.GetState() != yardv1.TaskState_TASK_STATE_COMPLETED || resp.Task.TaskId != resp.TaskIDs()[0] {
		t.Errorf("got %v", resp)
	}
}

func TestSubmitWaitEndsWithTheStateSoFar(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for answers that do not come")
	s := newStage(t) // and no owners at all
	req, resp := tasks(1), &yardv1.SubmitResponse{}
	req.Wait, req.WaitMs = true, 200
	s.must(topology.API("shop", "tasks.submit"), req, resp)
	if resp.Task.GetState() != yardv1.TaskState_TASK_STATE_QUEUED || resp.Task.Tasklist != "main" || len(resp.TaskIDs()) != 1 {
		t.Errorf("got %v", resp)
	}
}

func TestListMergesNewestFirst(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	at := func(ms int64, p int) *yardv1.Task {
		return &yardv1.Task{TaskId: ids.NewTaskID(time.UnixMilli(ms), p, 1).String()}
	}
	list := func(subject string, found ...*yardv1.Task) {
		serve(s, subject, func(r *rpcv1.ListTasksRequest) (natsrpc.Message, error) {
			if r.Domain != "shop" || r.Filter.Limit != 3 {
				t.Errorf("asked %v", r)
			}
			return &rpcv1.ListTasksResponse{Tasks: found}, nil
		})
	}
	list(topology.HistoryCall(0, "list"), at(5, 0), at(1, 0))
	list(topology.HistoryCall(1, "list"), at(4, 1))
	list(topology.TimerCall(0, "list"), at(5, 0)) // on its way: in both
	list(topology.TimerCall(1, "list"), at(3, 1))
	resp := &yardv1.ListResponse{}
	s.must(topology.API("shop", "tasks.list"), &yardv1.ListRequest{Limit: 3}, resp)
	var got []string
	for _, task := range resp.Tasks {
		got = append(got, task.TaskId)
	}
	testkit.Equal(t, "result", got, []string{at(5, 0).TaskId, at(4, 1).TaskId, at(3, 1).TaskId})
}

func TestDescribeSumsUp(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.must(topology.API("shop", "types.put"), &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: "pay", MaxConcurrency: 10}}, &yardv1.PutTypeResponse{})
	for p := range partitioning.History {
		serve(s, topology.HistoryCall(p, "describe"), func(*rpcv1.DescribePartitionRequest) (natsrpc.Message, error) {
			return &rpcv1.DescribePartitionResponse{Ready: 10, Running: 2, OldestReadyMs: int64(100 * p), UnreadBatches: 7}, nil
		})
		serve(s, topology.TimerCall(p, "describe"), func(*rpcv1.DescribeWaitingRequest) (natsrpc.Message, error) {
			return &rpcv1.DescribeWaitingResponse{Waiting: 1000}, nil
		})
	}
	for m := range partitioning.Matching {
		serve(s, topology.MatchingCall(m, "describe"), func(r *rpcv1.DescribeShardRequest) (natsrpc.Message, error) {
			if r.ListPollers > 0 { // two of them polled both shards
				workers := []*yardv1.Poller{{Worker: fmt.Sprint(m)}, {Worker: fmt.Sprint(m + 1)}, {Worker: fmt.Sprint(m + 2)}}
				return &rpcv1.DescribeShardResponse{ListedPollers: workers}, nil
			}
			return &rpcv1.DescribeShardResponse{WaitingPolls: int64(m), Pollers: 3, Slots: map[string]int32{"pay": int32(3 + m)}}, nil
		})
	}
	d := &yardv1.DescribeTasklistResponse{}
	s.must(topology.API("shop", "tasklists.describe"), &yardv1.DescribeTasklistRequest{Tasklist: "main"}, d)
	if d.Tasklist != "main" || d.Ready != 20 || d.Running != 4 || d.OldestReadyMs != 100 || d.UnreadBatches != 14 || d.Waiting != 2000 || d.WaitingPolls != 1 || d.Pollers != 4 {
		t.Errorf("got %v", d)
	}
	if len(d.Slots) != 1 || d.Slots[0].InUse != 4 || d.Slots[0].Limit != 10 {
		t.Errorf("slots %v", d.Slots)
	}
	g := &yardv1.GetTypeResponse{}
	s.must(topology.API("shop", "types.get"), &yardv1.GetTypeRequest{Name: "pay"}, g)
	if g.SlotsInUse != 4 || g.Type.MaxConcurrency != 10 {
		t.Errorf("got %v", g)
	}
}

// The very next submit goes by a tasklist's settings, and a list has them beside what owners count.
func TestTasklistsAreReadAsWritten(t *testing.T) {
	s := newStage(t)
	put := &yardv1.PutTasklistResponse{}
	s.must(topology.API("shop", "tasklists.put"), &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: "main", Priority: 1, Description: "first"}}, put)
	s.submit(1)
	for _, r := range append(s.records(0), s.records(1)...) {
		if r.Priority != 1 {
			t.Errorf("stored %v", r)
		}
	}
	for p := range partitioning.History {
		serve(s, topology.HistoryCall(p, "describe"), func(req *rpcv1.DescribePartitionRequest) (natsrpc.Message, error) {
			if req.Domain != "shop" || req.Tasklist != "" || req.List != 1001 {
				t.Errorf("asked %v", req)
			}
			return &rpcv1.DescribePartitionResponse{Tasklists: []*yardv1.ListedTasklist{{Name: "main", Ready: 1}, {Name: "other", Running: 1}}}, nil
		})
		serve(s, topology.TimerCall(p, "describe"), func(*rpcv1.DescribeWaitingRequest) (natsrpc.Message, error) {
			return &rpcv1.DescribeWaitingResponse{}, nil
		})
	}
	list := &yardv1.ListTasklistsResponse{}
	s.must(topology.API("shop", "tasklists.list"), &yardv1.ListTasklistsRequest{}, list)
	if l := list.Tasklists; len(l) != 2 || l[0].Settings.GetRevision() != put.Tasklist.Revision || l[0].Ready != 2 || l[1].Name != "other" || l[1].Running != 2 || l[1].Settings != nil {
		t.Errorf("got %v", list)
	}
	gone := &yardv1.DeleteTasklistResponse{}
	s.must(topology.API("shop", "tasklists.delete"), &yardv1.DeleteTasklistRequest{Name: "main", Revision: put.Tasklist.Revision}, gone)
	if gone.Tasklist.Description != "first" {
		t.Errorf("deleted %v", gone)
	}
	testkit.Code(t, "error", s.ask(topology.API("shop", "tasklists.get"), &yardv1.GetTasklistRequest{Name: "main"}, nil), fault.NotFound)
}

// A partition without an owner says so, and the others are shown.
func TestQueuesAreShownByPartition(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	serve(s, topology.HistoryCall(0, "describe"), func(r *rpcv1.DescribePartitionRequest) (natsrpc.Message, error) {
		testkit.Equal(t, "asked", r.String(), (&rpcv1.DescribePartitionRequest{Domain: "shop", Queues: 10, Domains: 3}).String())
		return &rpcv1.DescribePartitionResponse{Queues: &yardv1.PartitionQueues{Queues: []*yardv1.Queue{{Lane: "p1", Tasks: 7}}}}, nil
	})
	resp := &yardv1.ListQueuesResponse{}
	s.must(topology.Admin("queues.list"), &yardv1.ListQueuesRequest{Domain: "shop", Domains: 3}, resp)
	if p := resp.Partitions; len(p) != partitioning.History || p[0].Error != "" || p[0].Queues[0].Tasks != 7 || p[1].Partition != 1 || p[1].Error == "" || resp.NextPartition != 0 {
		t.Errorf("got %v", resp)
	}
	one := &yardv1.ListQueuesResponse{}
	s.must(topology.Admin("queues.list"), &yardv1.ListQueuesRequest{Domain: "shop", Partitions: 1, Domains: 3}, one)
	testkit.Equal(t, "of one", len(one.Partitions), 1)
	for path, bad := range map[string]*yardv1.ListQueuesRequest{
		"/partition": {Partition: int32(partitioning.History)}, "/partitions": {Partitions: -1}, "/limit": {Limit: 101}, "/domains": {Domains: 1001}, "/domain": {Domain: "a.b"},
	} {
		e := s.ask(topology.Admin("queues.list"), bad, nil)
		testkit.Code(t, path, e, fault.InvalidArgument)
		testkit.Equal(t, "path", e.Path, path)
	}
}

// Who does not answer is named, and the others are added up.
func TestTheBusiestDomainsAreShown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	top := func(d *yardv1.TopDomain) *yardv1.TopDomainsResponse {
		return &yardv1.TopDomainsResponse{Domains: []*yardv1.TopDomain{d}}
	}
	serve(s, topology.HistoryCall(0, "describe"), func(r *rpcv1.DescribePartitionRequest) (natsrpc.Message, error) {
		testkit.Equal(t, "asked", r.String(), (&rpcv1.DescribePartitionRequest{Top: &yardv1.TopDomainsRequest{Limit: 20, By: "completed"}}).String())
		return &rpcv1.DescribePartitionResponse{Top: top(&yardv1.TopDomain{Domain: "shop", CompletedPerS: 2})}, nil
	})
	serve(s, topology.TimerCall(1, "describe"), func(*rpcv1.DescribeWaitingRequest) (natsrpc.Message, error) {
		return &rpcv1.DescribeWaitingResponse{Top: top(&yardv1.TopDomain{Domain: "shop", Waiting: 7})}, nil
	})
	serve(s, topology.MatchingCall(1, "describe"), func(*rpcv1.DescribeShardRequest) (natsrpc.Message, error) {
		return &rpcv1.DescribeShardResponse{Domains: &yardv1.TopDomainsResponse{FullLimits: []*yardv1.FullLimit{{Domain: "shop", Ref: "type/pay"}}}}, nil
	})
	resp := &yardv1.TopDomainsResponse{}
	s.must(topology.Admin("domains.top"), &yardv1.TopDomainsRequest{}, resp)
	if d := resp.Domains; len(d) != 1 || d[0].CompletedPerS != 2 || d[0].Waiting != 7 || d[0].Received != 1 || d[0].Weight != 1 || len(resp.FullLimits) != 1 {
		t.Errorf("got %v", resp)
	}
	testkit.Equal(t, "silent", fmt.Sprint(resp.SilentHistory, resp.SilentTimers, resp.SilentShards), "[1] [0] [0]")
	for path, bad := range map[string]*yardv1.TopDomainsRequest{"/limit": {Limit: 101}, "/by": {By: "size"}, "/domain": {Domain: "a b"}} {
		e := s.ask(topology.Admin("domains.top"), bad, nil)
		testkit.Code(t, path, e, fault.InvalidArgument)
		testkit.Equal(t, "path", e.Path, path)
	}
}

func TestDomainsAndTypesAreReadAsWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, name := range []string{"b", "a"} {
		s.must(topology.Admin("domains.put"), &yardv1.PutDomainRequest{Domain: &yardv1.Domain{Name: name, RetentionMs: 900_000}}, &yardv1.PutDomainResponse{})
	}
	list := &yardv1.ListDomainsResponse{}
	s.must(topology.Admin("domains.list"), &yardv1.ListDomainsRequest{}, list)
	if len(list.Domains) != 3 || list.Domains[0].Name != "a" || list.Domains[2].RetentionMs != 604_800_000 {
		t.Errorf("got %v", list.Domains)
	}
	got := &yardv1.GetDomainResponse{}
	s.must(topology.Admin("domains.get"), &yardv1.GetDomainRequest{Name: "a"}, got)
	if got.Domain.RetentionMs != 900_000 {
		t.Errorf("got %v", got)
	}
	testkit.Code(t, "error", s.ask(topology.Admin("domains.get"), &yardv1.GetDomainRequest{Name: "c"}, nil), fault.NotFound)
	// The very next submit goes by the type.
	s.must(topology.API("shop", "types.put"), &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: "email.send", StartToCloseMs: 1234}}, &yardv1.PutTypeResponse{})
	s.submit(1)
	all := append(s.records(0), s.records(1)...)
	if all[0].Policy.StartToCloseMs != 1234 {
		t.Errorf("policy %v", all[0].Policy)
	}
}

// The very next type may name a limit, and it goes once none does.
func TestLimitsAreReadAsWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for m := range partitioning.Matching {
		serve(s, topology.MatchingCall(m, "describe"), func(*rpcv1.DescribeShardRequest) (natsrpc.Message, error) {
			return &rpcv1.DescribeShardResponse{Limits: map[string]int32{"shared/acme": int32(3 + m), "domain": 9}}, nil
		})
	}
	put := &yardv1.PutLimitResponse{}
	s.must(topology.API("shop", "limits.put"), &yardv1.PutLimitRequest{Limit: &yardv1.Limit{Name: "acme", MaxConcurrency: 5, Description: "theirs"}}, put)
	s.must(topology.API("shop", "types.put"), &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: "pay", Limits: []string{"acme"}}}, &yardv1.PutTypeResponse{})
	got := &yardv1.GetLimitResponse{}
	s.must(topology.API("shop", "limits.get"), &yardv1.GetLimitRequest{Name: "acme"}, got)
	if got.SlotsInUse != 4 || got.Limit.MaxConcurrency != 5 || got.Limit.Revision != put.Limit.Revision {
		t.Errorf("got %v", got)
	}
	list := &yardv1.ListLimitsResponse{}
	s.must(topology.API("shop", "limits.list"), &yardv1.ListLimitsRequest{}, list)
	if len(list.Limits) != 1 || list.Limits[0].Description != "theirs" {
		t.Errorf("got %v", list)
	}
	remove := &yardv1.DeleteLimitRequest{Name: "acme", Revision: put.Limit.Revision}
	testkit.Code(t, "error", s.ask(topology.API("shop", "limits.delete"), remove, nil), fault.FailedPrecondition)
	s.must(topology.API("shop", "types.delete"), &yardv1.DeleteTypeRequest{Name: "pay"}, &yardv1.DeleteTypeResponse{})
	gone := &yardv1.DeleteLimitResponse{}
	s.must(topology.API("shop", "limits.delete"), remove, gone)
	if gone.Limit.GetMaxConcurrency() != 5 {
		t.Errorf("deleted %v", gone)
	}
	testkit.Code(t, "error", s.ask(topology.API("shop", "limits.get"), &yardv1.GetLimitRequest{Name: "acme"}, nil), fault.NotFound)
}

// The very next question shows a pause, of a type as of a tasklist, and the settings are not touched.
func TestPausesAreReadAsWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	put := &yardv1.PauseResponse{}
	s.must(topology.API("shop", "tasklists.pause"), &yardv1.PauseRequest{Name: "main", Reason: "down", By: "ann", ForMs: 3_600_000}, put)
	if p := put.Pause; p.Reason != "down" || p.By != "ann" || p.SinceMs == 0 || p.UntilMs != p.SinceMs+3_600_000 {
		t.Errorf("got %v", p)
	}
	got := &yardv1.GetTasklistResponse{}
	s.must(topology.API("shop", "tasklists.get"), &yardv1.GetTasklistRequest{Name: "main"}, got)
	if got.Tasklist.GetName() != "main" || got.Tasklist.Revision != 0 || got.Pause.GetSinceMs() != put.Pause.SinceMs {
		t.Errorf("got %v", got)
	}
	gone := &yardv1.PauseResponse{}
	s.must(topology.API("shop", "tasklists.resume"), &yardv1.ResumeRequest{Name: "main"}, gone)
	if gone.Pause.GetReason() != "down" {
		t.Errorf("got %v", gone)
	}
	testkit.Code(t, "error", s.ask(topology.API("shop", "tasklists.get"), &yardv1.GetTasklistRequest{Name: "main"}, nil), fault.NotFound)
	s.must(topology.API("shop", "types.pause"), &yardv1.PauseRequest{Name: "email.send"}, &yardv1.PauseResponse{})
	typ := &yardv1.GetTypeResponse{}
	s.must(topology.API("shop", "types.get"), &yardv1.GetTypeRequest{Name: "email.send"}, typ)
	if typ.Type.GetName() != "email.send" || typ.Pause.GetUntilMs() != 0 || typ.Pause.GetSinceMs() == 0 {
		t.Errorf("got %v", typ)
	}
	s.must(topology.API("shop", "types.resume"), &yardv1.ResumeRequest{Name: "email.send"}, &yardv1.PauseResponse{})
}

// An owner that comes late is waited for.
func TestQueriesWaitForAnOwner(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := ids.NewTaskID(farPast, 0, 1)
	answered := make(chan *fault.Error)
	go func() {
		answered <- s.ask(topology.API("shop", "tasks.get"), &yardv1.GetRequest{TaskId: id.String()}, &yardv1.GetResponse{})
	}()
	serve(s, topology.HistoryCall(0, "get"), func(*rpcv1.GetTaskRequest) (natsrpc.Message, error) {
		return &rpcv1.GetTaskResponse{Task: &yardv1.Task{TaskId: id.String()}}, nil
	})
	if e := <-answered; e != nil {
		t.Error(e)
	}
}
