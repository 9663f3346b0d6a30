package matching_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

func TestMain(m *testing.M) {
	testkit.SideBySide(4)
	natskit.VerifyTestMain(m)
}

const patience = 60 * time.Second

var parts = topology.Partitioning{History: 1, Matching: 3}

// start runs a service on tables in memory and returns what stops it.
func start(t *testing.T, nc *nats.Conn, node string) (stop func()) {
	t.Helper()
	cfg := matching.DefaultConfig()
	cfg.Tables = matching.TablesMemory
	env := process.Env{NATS: nc, Partitioning: parts, Provisions: true, Node: node, Log: slog.New(slog.DiscardHandler)}
	s, err := matching.New(matching.Deps{Env: env, Config: cfg})
	testkit.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-done:
		t.Fatalf("the service ended: %v", err)
	case <-time.After(patience):
		t.Fatal("the service is not ready")
	}
	return func() {
		cancel()
		testkit.Check(t, <-done)
	}
}

func cluster(t *testing.T) (*natskit.Server, *nats.Conn, jetstream.KeyValue) {
	t.Helper()
	server := natskit.Run(t)
	nc := server.Connect(t)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	testkit.NoError(t, provision.Apply(t.Context(), js, parts, provision.Options{}))
	kv, err := js.KeyValue(t.Context(), topology.ConfigBucket)
	testkit.NoError(t, err)
	history(t, server.Connect(t))
	return server, nc, kv
}

// history lets every event are applied and has nothing to tell.
func history(t *testing.T, nc *nats.Conn) {
	t.Helper()
	ok := func(_ *nats.Subscription, err error) {
		testkit.NoError(t, err)
	}
	ok(nc.Subscribe(topology.EventRequests(0), func(m *nats.Msg) {
		var b logv1.EventBatch
		if err := b.UnmarshalVT(m.Data); err != nil {
			t.Error(err)
			return
		}
		v := &logv1.VerdictBatch{RequestId: b.RequestId}
		for range b.Events {
			v.Verdicts = append(v.Verdicts, &logv1.EventVerdict{})
		}
		data, err := v.MarshalVT()
		if err == nil {
			err = nc.Publish(b.ReplyTo, data)
		}
		testkit.Check(t, err)
	}))
	log := slog.New(slog.DiscardHandler)
	ok(natsrpc.Serve(nc, topology.HistoryCall(0, "bookings"), nil, log, func(context.Context, *rpcv1.BookingsRequest) (natsrpc.Message, error) {
		return &rpcv1.BookingsResponse{}, nil
	}))
	ok(natsrpc.Serve(nc, topology.HistoryCall(0, "undelivered"), nil, log, func(context.Context, *rpcv1.UndeliveredRequest) (natsrpc.Message, error) {
		return &rpcv1.UndeliveredResponse{}, nil
	}))
	ok(natsrpc.Serve(nc, topology.HistoryCall(0, "retrigger"), nil, log, func(context.Context, *rpcv1.RetriggerRequest) (natsrpc.Message, error) {
		return &rpcv1.RetriggerResponse{}, nil
	}))
}

// poll sends a poll to the shard of a tasklist and returns where it will be answered.
func poll(t *testing.T, nc *nats.Conn, tasklist string, wait time.Duration) *nats.Subscription {
	t.Helper()
	sub, err := nc.SubscribeSync(nc.NewInbox())
	testkit.NoError(t, err)
	data := testkit.Encoded(t, &rpcv1.Poll{
		Domain: "shop", Tasklist: tasklist, MaxTasks: 1, ReplyTo: sub.Subject, WaitMs: wait.Milliseconds(),
	})
	shard := ids.MatchingShard("shop", tasklist, 0, parts.Matching)
	testkit.NoError(t, nc.Publish(topology.MatchingPoll(shard, open(t, nc, shard)), data))
	return sub
}

// open is the epoch of a shard's owner.
func open(t *testing.T, nc *nats.Conn, shard int) uint64 {
	t.Helper()
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), topology.CheckpointsBucket)
	testkit.NoError(t, err)
	var now ownership.Epoch
	testkit.Eventually(t, patience, func() error {
		e, err := kv.Get(t.Context(), topology.MatchingEpoch(shard))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(e.Value(), &now); err != nil || now.Open < now.Taken {
			return fmt.Errorf("%+v is not open: %v", now, err)
		}
		return nil
	})
	return now.Open
}

// TestR42AnOvertakenOwnerStops: it sends nothing more to the polls that it holds, which frontends end, and
// takes the shard again in an epoch of its own, since it is the only member.
func TestR42AnOvertakenOwnerStops(t *testing.T) {
	t.Parallel()
	server, nc, _ := cluster(t)
	defer start(t, server.Connect(t), "a")()
	parked := poll(t, nc, "mail", time.Hour)
	testkit.Eventually(t, patience, func() error {
		if d, err := describe(nc, "mail"); err != nil || d.WaitingPolls != 1 {
			return fmt.Errorf("%v %v", d, err)
		}
		return nil
	})
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), topology.CheckpointsBucket)
	testkit.NoError(t, err)
	shard := ids.MatchingShard("shop", "mail", 0, parts.Matching)
	rival, err := ownership.TakeEpoch(t.Context(), kv, topology.MatchingEpoch(shard), 0)
	testkit.NoError(t, err)
	if now := open(t, nc, shard); now <= rival.Number() {
		t.Errorf("epoch %d is open, a rival has taken %d", now, rival.Number())
	}
	testkit.Check(t, testkit.Err(poll(t, nc, "mail", 0).NextMsg(patience)))
	if n, _, err := parked.Pending(); err != nil || n != 0 {
		t.Errorf("the parked poll got %d answers: %v", n, err)
	}
}

// TestEpochComesUpWithTheLog: the bucket with the epochs was lost, or an old one restored. An owner of a low epoch is
// overtaken by one of which the hint stream, or a fence, still knows. It is not one epoch at a time until that.
func TestEpochComesUpWithTheLog(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for owners to take turns")
	server, nc, _ := cluster(t)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	testkit.NoError(t, testkit.Err(js.CreateConsumer(t.Context(), topology.MatchingStream(1), jetstream.ConsumerConfig{Durable: "owner-60", AckPolicy: jetstream.AckExplicitPolicy})))
	defer start(t, server.Connect(t), "a")()
	testkit.Eventually(t, patience, func() error {
		if now := open(t, nc, 1); now < 60 || now > 2*60 {
			return fmt.Errorf("epoch %d is open", now)
		}
		return nil
	})
}

func describe(nc *nats.Conn, tasklist string) (*rpcv1.DescribeShardResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	shard := ids.MatchingShard("shop", tasklist, 0, parts.Matching)
	return natsrpc.Call[rpcv1.DescribeShardResponse](ctx, nc, topology.MatchingCall(shard, "describe"),
		&rpcv1.DescribeShardRequest{Domain: "shop", Tasklist: tasklist})
}

func TestServesAllShardsAndDrains(t *testing.T) {
	t.Parallel()
	server, nc, _ := cluster(t)
	stop := start(t, server.Connect(t), "a")
	var parked []*nats.Subscription
	for i := range 10 {
		tasklist := fmt.Sprint("list", i)
		testkit.Eventually(t, patience, func() error { _, err := describe(nc, tasklist); return err })
		if _, err := poll(t, nc, tasklist, 0).NextMsg(patience); err != nil {
			t.Fatalf("%s: %v", tasklist, err)
		}
		parked = append(parked, poll(t, nc, tasklist, time.Hour))
		testkit.Eventually(t, patience, func() error {
			if d, err := describe(nc, tasklist); err != nil || d.WaitingPolls != 1 {
				return fmt.Errorf("%v %v", d, err)
			}
			return nil
		})
	}
	stop()
	for _, sub := range parked {
		if m, err := sub.NextMsg(patience); err != nil || len(m.Data) > 0 {
			t.Fatalf("a parked poll: %v %v", m, err)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	cfg := matching.DefaultConfig()
	if problems := append(cfg.Validate(), append(cfg.Redis.Validate(), cfg.Shard.Validate()...)...); len(problems) > 0 {
		t.Fatalf("the defaults: %v", problems)
	}
	cfg.Tables, cfg.Redis.Addrs, cfg.Shard.PollsMax = "disk", nil, 0
	if problems := append(cfg.Validate(), append(cfg.Redis.Validate(), cfg.Shard.Validate()...)...); len(problems) != 3 {
		t.Fatalf("got %v", problems)
	}
}
