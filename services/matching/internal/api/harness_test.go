package api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/api"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/memtable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestMain runs more tests side by side than there are cores: most of the time they
// wait for servers and for the disk.
func TestMain(m *testing.M) {
	testkit.SideBySide(6)
	goleak.VerifyTestMain(m)
}

const (
	domain   = "shop"
	tasklist = "mail"
	patience = 15 * time.Second
)

var parts = topology.Partitioning{History: 2, Matching: 1}

// limits is what an operator has set; safe for concurrent use.
type limits struct {
	mu sync.Mutex
	of map[string]int
}

func (l *limits) Limit(_, typ string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[typ]
}

func (l *limits) Limited(string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for typ, n := range l.of {
		if n > 0 {
			all = append(all, typ)
		}
	}
	return all
}

func (l *limits) set(typ string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[typ] = n
}

// stack is one matching shard on a real NATS with a fake history.
type stack struct {
	t       testing.TB
	server  *testkit.NATS
	nc      *nats.Conn
	history *history
	limits  *limits
	store   *memtable.Store
	metrics *shard.Metrics
	config  shard.Config
	tables  func() shard.Tables
	// quarantine of the shards that are started.
	quarantine time.Duration
}

func newStack(t testing.TB) *stack {
	server := testkit.RunNATS(t)
	s := &stack{
		t: t, server: server, nc: server.Connect(t), limits: &limits{of: map[string]int{}},
		store: memtable.New(), metrics: shard.NewMetrics(nil, parts.Matching), config: shard.DefaultConfig(),
	}
	s.tables = func() shard.Tables { return s.store.Shard(0) }
	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := provision.Apply(t.Context(), js, parts, provision.Options{}); err != nil {
		t.Fatal(err)
	}
	s.history = newHistory(t, server.Connect(t))
	return s
}

func testLog() *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

// start serves the shard and returns it with a function that stops it and waits.
func (s *stack) start() (*shard.Shard, func()) {
	s.t.Helper()
	port, err := api.New(s.server.Connect(s.t), 0, parts, testLog())
	if err != nil {
		s.t.Fatal(err)
	}
	sh := shard.New(shard.Deps{
		Partitions: parts.History, VerdictsTo: port.VerdictsTo(), AnswerBytesMax: port.AnswerBytesMax(), Quarantine: s.quarantine,
		Tables: s.tables(), Outbox: port, History: port, Limits: s.limits, Config: s.config, Metrics: s.metrics, Log: testLog(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- port.Serve(ctx, sh) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("serve: %v", err)
		}
	})
	s.t.Cleanup(stop)
	s.await(func() error { // polls find somebody
		_, err := s.describe()
		return err
	})
	s.send(1, 0, nil).tasks() // opens the domain
	s.await(func() error {
		// Once because the tables are empty, once because the hint consumer is new.
		if s.history.count(func() int { return s.history.retriggers }) < 2*parts.History {
			return errors.New("the domain is not open")
		}
		return nil
	})
	return sh, stop
}

func (s *stack) await(cond func() error) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, cond)
}

func (s *stack) describe() (*rpcv1.DescribeShardResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return natsrpc.Call[rpcv1.DescribeShardResponse](ctx, s.nc, topology.MatchingCall(0, "describe"),
		&rpcv1.DescribeShardRequest{Domain: domain, Tasklist: tasklist})
}

// awaitReady waits until the table holds n triggers.
func (s *stack) awaitReady(n int64) {
	s.t.Helper()
	s.await(func() error {
		d, err := s.describe()
		if err == nil && d.Ready != n {
			err = fmt.Errorf("%d triggers in the table, want %d", d.Ready, n)
		}
		return err
	})
}

// awaitPolls waits until n polls wait.
func (s *stack) awaitPolls(n int64) {
	s.t.Helper()
	s.await(func() error {
		d, err := s.describe()
		if err == nil && d.WaitingPolls != n {
			err = fmt.Errorf("%d polls wait, want %d", d.WaitingPolls, n)
		}
		return err
	})
}

// waiter is a poll that was sent.
type waiter struct {
	s   *stack
	sub *nats.Subscription
}

// send sends a poll; change may be nil.
func (s *stack) send(n int, wait time.Duration, change func(*rpcv1.Poll)) *waiter {
	s.t.Helper()
	inbox := s.nc.NewInbox()
	sub, err := s.nc.SubscribeSync(inbox)
	if err != nil {
		s.t.Fatal(err)
	}
	p := &rpcv1.Poll{
		Domain: domain, Tasklist: tasklist, MaxTasks: int32(n), Worker: "w", ReplyTo: inbox,
		UntilMs: time.Now().Add(wait).UnixMilli(),
	}
	if change != nil {
		change(p)
	}
	data, err := p.MarshalVT()
	if err == nil {
		err = s.nc.Publish(topology.MatchingCall(0, "poll"), data)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return &waiter{s, sub}
}

// message waits for the answer.
func (w *waiter) message() *nats.Msg {
	w.s.t.Helper()
	m, err := w.sub.NextMsg(patience)
	if err != nil {
		w.s.t.Fatalf("no answer to a poll: %v", err)
	}
	return m
}

// tasks waits for the answer and reads it.
func (w *waiter) tasks() []*yardv1.PolledTask {
	w.s.t.Helper()
	m := w.message()
	if e := fault.Decode(m.Header.Get(fault.HeaderCode), m.Header.Get(fault.HeaderDescription), m.Data); e != nil {
		w.s.t.Fatalf("a poll was refused: %v", e)
	}
	var resp yardv1.PollResponse
	if err := resp.UnmarshalVT(m.Data); err != nil {
		w.s.t.Fatal(err)
	}
	return resp.Tasks
}

// poll polls until n tasks have come, in one answer or several.
func (s *stack) poll(n int) []*yardv1.PolledTask {
	s.t.Helper()
	var all []*yardv1.PolledTask
	for end := time.Now().Add(patience); len(all) < n && time.Now().Before(end); {
		all = append(all, s.send(n-len(all), time.Second, nil).tasks()...)
	}
	if len(all) != n {
		s.t.Fatalf("%d tasks came, want %d", len(all), n)
	}
	return all
}

func (s *stack) jetStream() jetstream.JetStream {
	s.t.Helper()
	js, err := jetstream.New(s.nc)
	if err != nil {
		s.t.Fatal(err)
	}
	return js
}
