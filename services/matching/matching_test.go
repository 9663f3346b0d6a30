package matching_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

var parts = topology.Partitioning{History: 1, Matching: 3}

// start runs a service on tables in memory and returns what stops it.
func start(t *testing.T, nc *nats.Conn, node string) (stop func()) {
	t.Helper()
	cfg := matching.DefaultConfig()
	cfg.Tables = matching.TablesMemory
	s, err := matching.New(matching.Deps{
		NATS: nc, Partitioning: parts, Node: node, Config: cfg, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
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
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}

func cluster(t *testing.T) (*testkit.NATS, *nats.Conn, jetstream.KeyValue) {
	t.Helper()
	server := testkit.RunNATS(t)
	nc := server.Connect(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := provision.Apply(t.Context(), js, parts, provision.Options{}); err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), topology.ConfigBucket)
	if err != nil {
		t.Fatal(err)
	}
	return server, nc, kv
}

// poll sends a poll to the shard of a tasklist and returns where it will be answered.
func poll(t *testing.T, nc *nats.Conn, tasklist string, wait time.Duration) *nats.Subscription {
	t.Helper()
	sub, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	data, err := (&rpcv1.Poll{
		Domain: "shop", Tasklist: tasklist, MaxTasks: 1, ReplyTo: sub.Subject, UntilMs: time.Now().Add(wait).UnixMilli(),
	}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish(topology.MatchingCall(ids.MatchingShard("shop", tasklist, 0, parts.Matching), "poll"), data); err != nil {
		t.Fatal(err)
	}
	return sub
}

func describe(nc *nats.Conn, tasklist string) (*rpcv1.DescribeShardResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	shard := ids.MatchingShard("shop", tasklist, 0, parts.Matching)
	return natsrpc.Call[rpcv1.DescribeShardResponse](ctx, nc, topology.MatchingCall(shard, "describe"),
		&rpcv1.DescribeShardRequest{Domain: "shop", Tasklist: tasklist})
}

func TestServesAllShardsAndDrains(t *testing.T) {
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

func TestI8_LimitsFollowTheCatalog(t *testing.T) {
	server, nc, kv := cluster(t)
	defer start(t, server.Connect(t), "a")()
	for _, limit := range []int32{5, 0} {
		if err := catalog.PutType(t.Context(), kv, "shop", &yardv1.TaskType{Name: "pay.out", MaxConcurrency: limit}); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, patience, func() error {
			d, err := describe(nc, "mail")
			if _, limited := d.GetSlots()["pay.out"]; err == nil && limited != (limit > 0) {
				err = errors.New("the limit has not arrived")
			}
			return err
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	cfg := matching.DefaultConfig()
	if problems := append(cfg.Validate(), append(cfg.Redis.Validate(), cfg.Shard.Validate()...)...); len(problems) > 0 {
		t.Fatalf("the defaults: %v", problems)
	}
	cfg.Tables, cfg.Redis.Addrs, cfg.Shard.PollsMax = "disk", nil, 0
	if problems := append(cfg.Validate(), append(cfg.Redis.Validate(), cfg.Shard.Validate()...)...); len(problems) != 3 {
		t.Fatalf("got %v", problems)
	}
}
