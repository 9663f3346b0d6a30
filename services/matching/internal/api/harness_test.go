package api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/api"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/memtable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// task is what the fake history knows of one.
type task struct {
	typ      string
	priority int
	version  uint32 // grants so far
	running  bool
	booked   bool
	nonce    uint64
	worker   string
	grants   int
}

// history is a fake of history: it grants and releases as the real one does, and
// can be told to misbehave.
type history struct {
	t  testing.TB
	nc *nats.Conn

	mu      sync.Mutex
	tasks   map[ids.TaskID]*task
	next    uint64
	payload []byte
	// silent drops so many event batches before it answers again.
	silent int
	// refuse is the code with which the next grabs are refused, by type.
	refuse map[string]fault.Code
	// batches are the events as they came.
	batches []*logv1.EventBatch
	// running and most count attempts of each type, now and ever at once.
	running, most map[string]int
	hungry        int
	retriggers    int
}

func newHistory(t testing.TB, nc *nats.Conn) *history {
	h := &history{
		t: t, nc: nc, tasks: map[ids.TaskID]*task{}, refuse: map[string]fault.Code{},
		running: map[string]int{}, most: map[string]int{}, payload: []byte(`{"a":1}`),
	}
	subscribe := func(_ *nats.Subscription, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	for p := range parts.History {
		subscribe(nc.Subscribe(topology.Event(p), h.events))
		subscribe(natsrpc.Serve(nc, topology.HistoryCall(p, "bookings"), log, func(_ context.Context, _ *rpcv1.BookingsRequest) (natsrpc.Message, error) {
			return h.bookings(p), nil
		}))
		subscribe(natsrpc.Serve(nc, topology.HistoryCall(p, "retrigger"), log, func(_ context.Context, _ *rpcv1.RetriggerRequest) (natsrpc.Message, error) {
			return h.retrigger(p), nil
		}))
	}
	subscribe(nc.Subscribe(topology.HintHungry, func(*nats.Msg) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.hungry++
	}))
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *history) events(m *nats.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	batch := new(logv1.EventBatch)
	if err := batch.UnmarshalVT(m.Data); err != nil {
		h.t.Errorf("events: %v", err)
		return
	}
	h.batches = append(h.batches, batch)
	if h.silent > 0 {
		h.silent--
		return
	}
	answer := &logv1.VerdictBatch{RequestId: batch.RequestId}
	for i, e := range batch.Events {
		answer.Verdicts = append(answer.Verdicts, h.apply(e))
		if i == 2 || answer.SizeVT() > 600<<10 { // the rest in another message, as where payloads are large
			h.publish(batch.ReplyTo, answer)
			answer = &logv1.VerdictBatch{RequestId: batch.RequestId, First: uint32(i + 1)}
		}
	}
	if len(answer.Verdicts) > 0 {
		h.publish(batch.ReplyTo, answer)
	}
}

func (h *history) apply(e *logv1.Event) *logv1.EventVerdict {
	t := h.tasks[ids.TaskID(e.TaskId)]
	if t == nil {
		return &logv1.EventVerdict{Code: string(fault.NotFound)}
	}
	switch e.Kind {
	case logv1.EventKind_EVENT_KIND_STARTED:
		again := t.running && t.version == e.Version && t.nonce == e.Nonce
		if code := h.refuse[t.typ]; code != "" && !again {
			return &logv1.EventVerdict{Code: string(code)}
		}
		if !again && (t.running || e.Version != t.version+1) {
			return &logv1.EventVerdict{Code: string(fault.Stale)}
		}
		if !again {
			t.version, t.running, t.booked, t.nonce, t.worker = e.Version, true, e.Booked, e.Nonce, e.Worker
			t.grants++
			h.running[t.typ]++
			h.most[t.typ] = max(h.most[t.typ], h.running[t.typ])
		}
		polled, err := (&yardv1.PolledTask{
			TaskId: ids.TaskID(e.TaskId).String(), Type: t.typ, Tasklist: tasklist, Priority: int32(t.priority),
			Token:   ids.Token{Position: ids.Position(e.Position), Version: e.Version, Nonce: e.Nonce}.String(),
			Payload: &yardv1.Payload{Data: h.payload},
		}).MarshalVT()
		if err != nil {
			h.t.Error(err)
		}
		return &logv1.EventVerdict{Task: polled, DeadlineMs: time.Now().Add(time.Minute).UnixMilli()}
	case logv1.EventKind_EVENT_KIND_RELEASED:
		if t.running && t.version == e.Version && t.nonce == e.Nonce {
			h.end(ids.TaskID(e.TaskId), t)
			h.hint(h.groups(ids.TaskID(e.TaskId)), nil)
		}
	}
	return &logv1.EventVerdict{}
}

// end ends the running attempt and frees its slot.
func (h *history) end(id ids.TaskID, t *task) {
	t.running = false
	h.running[t.typ]--
	if t.booked {
		h.hint(nil, []*logv1.SlotRelease{{Domain: domain, Type: t.typ, Bookings: []byte(ids.Booking(id, t.version))}})
	}
}

// submit makes n ready tasks and returns their ids; without hint where lost is set.
func (h *history) submit(typ string, priority, n int) []ids.TaskID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var made []ids.TaskID
	for range n {
		h.next++
		id := ids.NewTaskID(time.Now(), int(h.next)%parts.History, h.next)
		h.tasks[id] = &task{typ: typ, priority: priority}
		made = append(made, id)
	}
	h.hint(h.groups(made...), nil)
	return made
}

// complete ends the attempts of polled tasks for good.
func (h *history) complete(tasks []*yardv1.PolledTask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range tasks {
		id, err := ids.ParseTaskID(p.TaskId)
		token, err2 := ids.ParseToken(p.Token)
		t := h.tasks[id]
		if err != nil || err2 != nil || t == nil || !t.running || t.nonce != token.Nonce || t.version != token.Version {
			h.t.Errorf("a task was polled whose attempt is not the current one: %v %+v", p, t)
			continue
		}
		h.end(id, t)
		delete(h.tasks, id)
	}
}

func (h *history) groups(all ...ids.TaskID) []*logv1.TriggerGroup {
	var groups []*logv1.TriggerGroup
	for _, id := range all {
		t := h.tasks[id]
		trigger := ids.Trigger{ID: id, Version: t.version + 1, Position: ids.NewPosition(1, ids.LaneFirst)}
		i := slices.IndexFunc(groups, func(g *logv1.TriggerGroup) bool { return g.Type == t.typ && int(g.Priority) == t.priority })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &logv1.TriggerGroup{
				Domain: domain, Tasklist: tasklist, Priority: int32(t.priority), Type: t.typ, ReadyAtUs: time.Now().UnixMicro(),
			})
		}
		groups[i].Triggers = ids.AppendTrigger(groups[i].Triggers, trigger)
	}
	return groups
}

func (h *history) hint(groups []*logv1.TriggerGroup, releases []*logv1.SlotRelease) {
	h.publish(topology.Matching(0), &logv1.Hints{Triggers: groups, Releases: releases})
}

func (h *history) publish(subject string, m interface{ MarshalVT() ([]byte, error) }) {
	data, err := m.MarshalVT()
	if err == nil {
		err = h.nc.Publish(subject, data)
	}
	if err != nil {
		h.t.Error(err)
	}
}

func (h *history) bookings(p int) *rpcv1.BookingsResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	resp := &rpcv1.BookingsResponse{}
	for id, t := range h.tasks {
		if t.running && t.booked && id.Partition() == p {
			resp.Types = append(resp.Types, &rpcv1.Bookings{
				Type: t.typ, Bookings: []byte(ids.Booking(id, t.version)), ExpiresMs: []int64{time.Now().Add(time.Minute).UnixMilli()},
			})
		}
	}
	return resp
}

func (h *history) retrigger(p int) *rpcv1.RetriggerResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retriggers++
	var ready []ids.TaskID
	for id, t := range h.tasks {
		if !t.running && id.Partition() == p {
			ready = append(ready, id)
		}
	}
	if len(ready) > 0 {
		h.hint(h.groups(ready...), nil)
	}
	return &rpcv1.RetriggerResponse{Triggers: int64(len(ready))}
}

// count reads one of the fake's numbers.
func (h *history) count(f func() int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return f()
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
		if s.history.count(func() int { return s.history.retriggers }) < parts.History {
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
