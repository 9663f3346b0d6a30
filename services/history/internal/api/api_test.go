package api_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/api"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/queries"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// serve serves a partition whose log already holds something.
func serve(t *testing.T, w *memhistory.World) *nats.Conn {
	t.Helper()
	o := partition.New(partition.Deps{
		Partitioning: topology.Partitioning{History: 1, Matching: 1}, Node: "node", Config: partition.DefaultConfig(),
		Log: w, Archive: memhistory.Archive{World: w, Retention: func(*taskstate.Task) time.Duration { return time.Hour }},
		Reader: memhistory.Reader{World: w}, TimerStore: w, Timer: w, Checkpoints: w, Snapshots: memhistory.Snapshots{World: w}, Wire: w,
		Quarantine: func(context.Context, partition.Quarantined) error { return errors.New("nothing is to be set apart") },
		LogVersion: func() uint32 { return 1 }, Tokens: ids.NewTokens([ids.TokenSecretBytes]byte{}),
		Logger: slog.New(slog.DiscardHandler), Metrics: partition.NewMetrics(nil),
	})
	nc := natskit.Run(t).Connect(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- o.Run(ctx) }()
	go func() { ended <- api.Serve(ctx, nc, queries.Of(o), nil, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		for range cap(ended) {
			testkit.Check(t, <-ended)
		}
	})
	<-o.Ready()
	return nc
}

// call asks until somebody serves.
func call[Resp any, PResp interface {
	*Resp
	natsrpc.Message
}](t *testing.T, nc *nats.Conn, verb string, req natsrpc.Message) PResp {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		resp, err := natsrpc.Call[Resp, PResp](ctx, nc, topology.HistoryCall(0, verb), req)
		if err == nil {
			return resp
		}
		if fault.From(err).Code != fault.Unavailable || ctx.Err() != nil {
			t.Fatalf("%s: %v", verb, err)
		}
	}
}

// TestCallsOfAMatchingShard: what it learns over NATS is what its owner knows.
func TestCallsOfAMatchingShard(t *testing.T) {
	t.Parallel()
	id := ids.NewTaskID(time.Now(), 0, 1)
	encoded := func(m interface{ MarshalVT() ([]byte, error) }) []byte {
		data, err := m.MarshalVT()
		testkit.NoError(t, err)
		return data
	}
	w := memhistory.NewWorld(func(string, []byte) {}, func(string, []byte) bool { return true })
	w.AppendSubmit(3, encoded(&logv1.Batch{Tasks: []*logv1.Record{{
		Id: id[:], Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: &logv1.Policy{MaxAttempts: 1, StartToCloseMs: 600_000},
	}}}))
	nc := serve(t, w)
	var booked *rpcv1.BookingsResponse
	var sent uint64
	testkit.Eventually(t, time.Minute, func() error { // one that comes before the owner has admitted the task is refused
		sent++
		w.SendEvents(encoded(&logv1.EventBatch{
			LogVersion: 1, Shard: 1, ShardEpoch: 1, RequestId: sent, Polls: []*logv1.PollRef{{Worker: "w", ReplyTo: "inbox"}},
			Events: []*logv1.Event{{
				Kind: logv1.EventKind_EVENT_KIND_STARTED, TaskId: id[:], Position: uint64(ids.NewPosition(1, 3)), Version: 1, Poll: 1, Limits: []string{"type/send"},
			}},
		}))
		if booked = call[rpcv1.BookingsResponse](t, nc, "bookings", &rpcv1.BookingsRequest{}); len(booked.Groups) == 0 {
			return errors.New("the owner has not granted it")
		}
		return nil
	})
	if len(booked.Groups) != 1 || string(booked.Groups[0].Bookings) != ids.Booking(id, 1) || len(booked.Cursor) > 0 {
		t.Errorf("bookings: %v", booked)
	}
	told := call[rpcv1.UndeliveredResponse](t, nc, "undelivered", &rpcv1.UndeliveredRequest{Epoch: 2})
	var task yardv1.PolledTask
	if len(told.Grants) != 1 || task.UnmarshalVT(told.Grants[0].Task) != nil || task.TaskId != id.String() || told.Grants[0].ReplyTo != "inbox" {
		t.Errorf("undelivered: %v", told)
	}
	if none := call[rpcv1.UndeliveredResponse](t, nc, "undelivered", &rpcv1.UndeliveredRequest{Epoch: 1}); len(none.Grants) > 0 {
		t.Errorf("of the asker's own epoch: %v", none)
	}
}

// R1: no call is answered elsewhere than in an inbox, whatever it asks.
func TestR1_CallsAreAnsweredInInboxesOnly(t *testing.T) {
	t.Parallel()
	nc := serve(t, memhistory.NewWorld(func(string, []byte) {}, func(string, []byte) bool { return true }))
	spy, err := nc.SubscribeSync("spy.*")
	testkit.NoError(t, err)
	id := ids.NewTaskID(time.Now(), 0, 1)
	for verb, ask := range map[string]func(){
		"get": func() {
			call[rpcv1.GetTaskResponse](t, nc, "get", &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop"})
		},
		"list":        func() { call[rpcv1.ListTasksResponse](t, nc, "list", &rpcv1.ListTasksRequest{Domain: "shop"}) },
		"describe":    func() { call[rpcv1.DescribePartitionResponse](t, nc, "describe", &rpcv1.DescribePartitionRequest{}) },
		"bookings":    func() { call[rpcv1.BookingsResponse](t, nc, "bookings", &rpcv1.BookingsRequest{}) },
		"undelivered": func() { call[rpcv1.UndeliveredResponse](t, nc, "undelivered", &rpcv1.UndeliveredRequest{}) },
		"retrigger":   func() { call[rpcv1.RetriggerResponse](t, nc, "retrigger", &rpcv1.RetriggerRequest{}) },
	} {
		ask() // it is served
		testkit.NoError(t, nc.PublishRequest(topology.HistoryCall(0, verb), "spy."+verb, []byte{0xff}))
		ask() // and has been through what came before
	}
	testkit.NoError(t, nc.Flush())
	for {
		m, err := spy.NextMsg(0)
		if err != nil {
			return
		}
		t.Errorf("%s was answered", m.Subject)
	}
}
