package api_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/memtable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tables"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// limits is what an operator has set; safe for concurrent use.
type limits struct {
	mu sync.Mutex
	of map[string]int
}

// Weights implements match.Catalog.
func (*limits) Weights(string) map[string]float64 { return nil }

// Partitions implements match.Catalog.
func (*limits) Partitions(string, string) int { return 1 }

// Scales implements match.Catalog.
func (*limits) Scales(string, string) bool { return false }
func (*limits) Strict(string, string) bool { return false }

func (*limits) GroupLimits(string) map[string]int { return nil }

// PausedGroups is part of match.Catalog.
func (*limits) PausedGroups(string) map[string]bool { return nil }

// Limits implements match.Catalog.
func (l *limits) Limits(string) []limit.Setting {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []limit.Setting
	for typ, n := range l.of {
		if n > 0 {
			all = append(all, limit.Setting{Ref: table.TypeRef(typ), Max: n, Types: []string{typ}})
		}
	}
	slices.SortFunc(all, func(a, b limit.Setting) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	return all
}

func (l *limits) set(typ string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[typ] = n
}

// stack is one matching shard on a real NATS with a fake history.
type stack struct {
	*line
	history *history
	limits  *limits
	store   *memtable.Store
	metrics *telemetry.Metrics
	config  shard.Config
	tables  func() tables.Tables
	// dial are further options of the owners' connections.
	dial []nats.Option

	mu sync.Mutex
	// owners are those that run, last the newest epoch there was, and turn is whose turn it
	// is to get a poll.
	owners []*owner
	last   uint64
	turn   int
}

// owner is one ownership of the shard.
type owner struct {
	*shard.Shard
	epoch uint64
	// done is closed when it has ended, with err.
	done chan struct{}
	err  error
	// kill ends it as a dead process ends: nothing is sent any more. stop drains it.
	kill, stop func()
}

func newStack(t testing.TB) *stack {
	l := newLine(t)
	s := &stack{
		line: l, limits: &limits{of: map[string]int{}}, history: newHistory(t, l.server.Connect(t)),
		store: memtable.New(), metrics: signalkit.Metrics(t), config: shard.DefaultConfig(),
	}
	s.tables = func() tables.Tables { return s.store.Shard(0) }
	return s
}

// start serves the shard in the next epoch, and returns when that is open and its domain too.
func (s *stack) start() *owner {
	s.t.Helper()
	s.mu.Lock()
	s.last++
	o := &owner{epoch: s.last, done: make(chan struct{})}
	s.mu.Unlock()
	conn := s.server.Connect(s.t, s.dial...)
	port := s.portOn(conn, o.epoch)
	opened := make(chan struct{})
	clock := shard.NewClock(nil)
	core := match.New(match.Config{
		Shards: parts.Matching, Partitions: parts.History, Epoch: o.epoch, Seed: o.epoch, AnswerBytesMax: port.AnswerBytesMax(),
		PollsMax: s.config.PollsMax, GrabEventsMax: shard.GrabEventsMax, GrabsInFlight: shard.GrabsInFlight, PopMax: shard.PopMax,
	}, s.limits, clock.Now())
	o.Shard = shard.New(shard.Deps{
		Partitions: parts.History, Core: core, Clock: clock, Tables: s.tables(), Outbox: port, History: port, RoundTrip: port.RoundTrip,
		Open: func(context.Context) error { close(opened); return nil }, Metrics: shard.NewMetrics(s.metrics, parts.Matching), Log: testLog(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(o.done)
		o.err = port.Serve(ctx, o.Shard)
		s.remove(o)
	}()
	o.stop = func() {
		s.remove(o)
		cancel()
		<-o.done
		if o.err != nil && !errors.Is(o.err, shard.ErrOvertaken) {
			s.t.Errorf("serve: %v", o.err)
		}
	}
	o.kill = func() {
		conn.Close()
		o.Overtaken()
		<-o.done
	}
	s.t.Cleanup(o.stop)
	select {
	case <-opened:
	case <-time.After(patience):
		s.t.Fatalf("epoch %d is not open", o.epoch)
	}
	s.mu.Lock()
	s.owners = append(s.owners, o)
	s.mu.Unlock()
	if o.epoch == 1 { // the tables are new, and so is the hint stream
		s.sendTo(o.epoch, 1, 0, nil).tasks() // opens the domain
		s.await(func() error {
			if s.history.count(func() int { return s.history.retriggers }) < 2*parts.History {
				return errors.New("the domain is not open")
			}
			return nil
		})
	}
	return o
}

func (s *stack) remove(o *owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners = slices.DeleteFunc(s.owners, func(other *owner) bool { return other == o })
}

// someEpoch is that of one of the owners that run; 0 where there is none.
func (s *stack) someEpoch() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owners) == 0 {
		return 0
	}
	s.turn++
	return s.owners[s.turn%len(s.owners)].epoch
}

func (s *stack) await(cond func() error) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, cond)
}

func (s *stack) describe() (*rpcv1.DescribeShardResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return natsrpc.Call[rpcv1.DescribeShardResponse](ctx, s.nc, topology.MatchingCall(0, "describe"),
		&rpcv1.DescribeShardRequest{Domain: domain, Tasklist: tasklist, LimitsInUse: true})
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

// send sends a poll to one of the owners; change may be nil.
func (s *stack) send(n int, wait time.Duration, change func(*rpcv1.Poll)) *waiter {
	s.t.Helper()
	return s.sendTo(s.someEpoch(), n, wait, change)
}

func (s *stack) sendTo(epoch uint64, n int, wait time.Duration, change func(*rpcv1.Poll)) *waiter {
	s.t.Helper()
	inbox := s.nc.NewInbox()
	sub, err := s.nc.SubscribeSync(inbox)
	testkit.NoError(s.t, err)
	p := &rpcv1.Poll{
		Domain: domain, Tasklist: tasklist, MaxTasks: int32(n), Worker: "w", ReplyTo: inbox,
		WaitMs: wait.Milliseconds(),
	}
	if change != nil {
		change(p)
	}
	s.publish(pollSubject(epoch), p)
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
	testkit.MustEqual(s.t, "tasks came", len(all), n)
	return all
}

// drainWith has workers poll and complete until n tasks are done.
func (s *stack) drainWith(workers, n int) {
	s.t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	done := map[string]bool{}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				s.history.expire()
				got := s.pollOnce(7)
				s.history.complete(got)
				mu.Lock()
				for _, p := range got {
					if done[p.TaskId] {
						s.t.Errorf("%s was done twice", p.TaskId)
					}
					done[p.TaskId] = true
				}
				if len(done) >= n {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(done) != n {
		d, err := s.describe()
		s.t.Errorf("%d of %d tasks were done; %v %v; %s", len(done), n, d, err, s.history.left())
	}
}

// newest is the newest epoch that is open, as frontends know it.
func (s *stack) newest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owners) == 0 {
		return 0
	}
	return s.owners[len(s.owners)-1].epoch
}

// pollOnce polls once, for a short while. If a later epoch opens the poll is over, as
// frontends end it, after what that epoch's owner has sent again.
func (s *stack) pollOnce(n int) []*yardv1.PolledTask {
	inbox := s.nc.NewInbox()
	sub, err := s.nc.SubscribeSync(inbox)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	defer func() { _ = sub.Unsubscribe() }()
	epoch := s.someEpoch()
	data, err := (&rpcv1.Poll{
		Domain: domain, Tasklist: tasklist, MaxTasks: int32(n), ReplyTo: inbox, WaitMs: 300,
	}).MarshalVT()
	if err == nil {
		err = s.nc.Publish(pollSubject(epoch), data)
	}
	if err != nil {
		s.t.Error(err)
		return nil
	}
	var m *nats.Msg
	for end := time.Now().Add(patience); m == nil && time.Now().Before(end); {
		over := s.newest() != epoch
		if m, err = sub.NextMsg(500 * time.Millisecond); err != nil && over {
			return nil
		}
	}
	if m == nil {
		return nil
	}
	var resp yardv1.PollResponse
	testkit.Check(s.t, resp.UnmarshalVT(m.Data))
	return resp.Tasks
}
