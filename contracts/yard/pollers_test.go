package yard_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func TestPollersComePageByPage(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		list := answering[yardv1.TasklistPollersRequest](t, s, topology.API("shop", "tasklists.pollers"),
			&yardv1.TasklistPollersResponse{Pollers: []*yardv1.Poller{{Worker: "ann", Version: "v1", Types: []string{"a"}, TypesCount: 3, SeenAgoMs: 1500, WaitingPolls: 2}}, NextCursor: "ann", KnownForMs: 60_000},
			&yardv1.TasklistPollersResponse{Pollers: []*yardv1.Poller{{Worker: "bob"}}, KnownForMs: 61_000},
		)
		got, err := s.client.TasklistPollers(soon(t), "mail")
		want := yard.Pollers{KnownFor: 61 * time.Second, All: []yard.Poller{
			{Worker: "ann", Version: "v1", Types: []string{"a"}, TypesCount: 3, SeenAgo: 1500 * time.Millisecond, WaitingPolls: 2}, {Worker: "bob"},
		}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v %v", got, err)
		}
		asked := list.requests()
		if len(asked) != 2 || !proto.Equal(asked[0], &yardv1.TasklistPollersRequest{Tasklist: "mail"}) ||
			!proto.Equal(asked[1], &yardv1.TasklistPollersRequest{Tasklist: "mail", Cursor: "ann"}) {
			t.Errorf("asked %v", asked)
		}
	})
}

func TestLiveWorkersComePageByPage(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		list := answering[yardv1.ListWorkersRequest](t, s, topology.API("shop", "workers.list"),
			&yardv1.ListWorkersResponse{Workers: []*yardv1.LiveWorker{{
				WorkerId: "a", Worker: "ann", Version: "v1", Host: "h", Tasklists: []string{"mail"}, RunningForMs: 1500, HeardAgoMs: 20, EveryMs: 3000, AttemptsCount: 1,
				Attempts: []*yardv1.LiveAttempt{{TaskId: "x", Type: "email.send", Tasklist: "mail", RunningForMs: 7}},
			}}, NextCursor: "a", KnownForMs: 60_000},
			&yardv1.ListWorkersResponse{Workers: []*yardv1.LiveWorker{{WorkerId: "b"}}, KnownForMs: 61_000},
		)
		got, err := s.client.Workers(soon(t))
		want := yard.LiveWorkers{KnownFor: 61 * time.Second, All: []yard.LiveWorker{
			{
				ID: "a", Worker: "ann", Version: "v1", Host: "h", Tasklists: []string{"mail"}, RunningFor: 1500 * time.Millisecond, HeardAgo: 20 * time.Millisecond, Every: 3 * time.Second, AttemptsCount: 1,
				Attempts: []yard.LiveAttempt{{TaskID: "x", Type: "email.send", Tasklist: "mail", RunningFor: 7 * time.Millisecond}},
			},
			{ID: "b"},
		}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v %v", got, err)
		}
		if asked := list.requests(); len(asked) != 2 || asked[0].Limit != 1000 || asked[1].Cursor != "a" {
			t.Errorf("asked %v", asked)
		}
	})
}

func TestTopLimitsAreAskedForAsWanted(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		top := answering[yardv1.TopLimitsRequest](t, s, topology.API("shop", "limits.top"), &yardv1.TopLimitsResponse{
			Others: 4, SilentShards: []int32{3}, Limits: []*yardv1.LimitUse{{
				Ref: "domain", SaturationPercent: 62, FullForMs: 1500,
				Holders: []*yardv1.SlotHolder{{TaskId: "x", State: yardv1.TaskState_TASK_STATE_RUNNING}, {TaskId: "y"}},
			}},
		})
		got, err := s.client.TopLimits(soon(t), yard.TopOptions{Limits: 5, Each: 2, ByWaiting: true})
		if err != nil || got.Others != 4 || len(got.Limits) != 1 || got.SilentShards[0] != 3 {
			t.Fatalf("%+v %v", got, err)
		}
		if l := got.Limits[0]; l.Ref != "domain" || l.SaturationPercent != 62 || l.FullFor != 1500*time.Millisecond ||
			l.Holders[0].State != yard.StateRunning || l.Holders[1].State != "" {
			t.Errorf("%+v", l)
		}
		if asked := top.requests(); !proto.Equal(asked[0], &yardv1.TopLimitsRequest{Limit: 5, Each: 2, ByWaiting: true}) {
			t.Errorf("asked %v", asked)
		}
	})
}

func TestAWorkerTellsItsVersion(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		w := yard.NewWorker(s.client, "mail", yard.WithVersion("v1.4.2"), yard.WithPollWait(time.Second))
		w.HandleRest(func(context.Context, *yard.Attempt) (yard.Payload, error) { return yard.Payload{}, nil })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		polls := s.polls()
		if len(polls) < 4 {
			t.Errorf("%d polls", len(polls))
		}
		for _, p := range polls {
			checktest.Equal(t, "a poll of version", p.WorkerVersion, "v1.4.2")
		}
		stop()
		checktest.Check(t, <-ended)
	})
	long := yard.NewWorker(nil, "mail", yard.WithVersion(strings.Repeat("x", 65)))
	if err := long.Run(t.Context()); fault.CodeOf(err) != fault.InvalidArgument || !strings.Contains(err.Error(), "version has 65 bytes") {
		t.Errorf("got %v", err)
	}
}
