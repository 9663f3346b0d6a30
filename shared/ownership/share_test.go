package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

const (
	count  = 16
	beat   = 100 * time.Millisecond
	expiry = 600 * time.Millisecond
	soon   = 60 * time.Second
)

// serving records what one node serves.
type serving struct {
	mu  sync.Mutex
	now map[int]int
	max int // calls of Serve for one partition at once
	all int // calls of Serve
}

func (s *serving) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

func (s *serving) serve(ctx context.Context, p int) error {
	s.add(p, 1)
	defer s.add(p, -1)
	<-ctx.Done()
	return nil
}

// with is the Serve of a node that is counted in s, too. It drains until it is released, if release is not nil.
func (s *serving) with(node *serving, release <-chan struct{}) func(context.Context, int) error {
	return func(ctx context.Context, p int) error {
		s.add(p, 1)
		defer s.add(p, -1)
		err := node.serve(ctx, p)
		if release != nil {
			<-release
		}
		return err
	}
}

func (s *serving) add(p, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		s.now = map[int]int{}
	}
	s.now[p] += n
	s.all += max(n, 0)
	s.max = max(s.max, s.now[p])
}

func (s *serving) partitions() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []int
	for p, n := range s.now {
		if n > 0 {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}

func server(t *testing.T) *natskit.Server {
	t.Helper()
	srv := natskit.Run(t)
	js, err := jetstream.New(srv.Connect(t))
	testkit.NoError(t, err)
	testkit.NoError(t, testkit.Err(js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "MEMBERS"})))
	return srv
}

func bucket(t *testing.T, nc *nats.Conn) jetstream.KeyValue {
	t.Helper()
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), "MEMBERS")
	testkit.NoError(t, err)
	return kv
}

// node is a running Share with a connection of its own.
type node struct {
	*Share
	serving *serving
	nc      *nats.Conn
	stop    func() error
}

func join(t *testing.T, srv *natskit.Server, name string, serve func(*serving) func(context.Context, int) error) *node {
	t.Helper()
	return joinWith(t, srv, name, func(c *Config, s *serving) { c.Serve = serve(s) })
}

// versionOne is what a cluster writes.
func versionOne() uint32 { return 1 }

// joinWith is join with any change of the config; Serve is to be set.
func joinWith(t *testing.T, srv *natskit.Server, name string, change func(*Config, *serving)) *node {
	t.Helper()
	n := start(t, srv, name, change)
	select {
	case <-n.Ready():
	case <-time.After(soon):
		t.Fatalf("node %s is not ready", name)
	}
	return n
}

// start is joinWith that does not wait until the node is ready.
func start(t *testing.T, srv *natskit.Server, name string, change func(*Config, *serving)) *node {
	t.Helper()
	n := &node{serving: &serving{}, nc: srv.Connect(t)}
	cfg := Config{
		Service: "test", Node: name, Count: count, KV: bucket(t, n.nc),
		Beat: beat, Expiry: expiry, Version: versionOne, Log: slog.New(slog.DiscardHandler),
	}
	change(&cfg, n.serving)
	n.Share = New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	n.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := n.stop(); err != nil {
			t.Errorf("node %s: %v", name, err)
		}
	})
	return n
}

func normal(s *serving) func(context.Context, int) error { return s.serve }

// balanced waits until the nodes serve exactly what rendezvous gives them.
func balanced(t *testing.T, nodes map[string]*node) {
	t.Helper()
	var names []string
	for name := range nodes {
		names = append(names, name)
	}
	testkit.Eventually(t, soon, func() error {
		for name, n := range nodes {
			var want []int
			for p := range count {
				if assign(names, count)[p] == name {
					want = append(want, p)
				}
			}
			if got := n.serving.partitions(); !slices.Equal(got, want) || !slices.Equal(n.Owned(), want) {
				return fmt.Errorf("%s of %v serves %v and says %v, want %v", name, names, got, n.Owned(), want)
			}
		}
		return nil
	})
}

// A node that knows of no other one shows its heartbeat half as often, and says so, until another one joins.
func TestALoneNodeShowsItsHeartbeatHalfAsOften(t *testing.T) {
	srv := server(t)
	kv := bucket(t, srv.Connect(t))
	shows := func(what string, every time.Duration) {
		t.Helper()
		testkit.Eventually(t, soon, func() error {
			e, err := kv.Get(t.Context(), "test.a")
			if err == nil && readAnnouncement(e.Value()).every() != every {
				err = fmt.Errorf("%s: it shows %s, want every %v", what, e.Value(), every)
			}
			return err
		})
	}
	join(t, srv, "a", normal)
	shows("alone", 2*beat)
	b := join(t, srv, "b", normal)
	shows("beside another node", beat)
	testkit.NoError(t, b.stop())
	shows("alone again", 2*beat)
}

// deafBucket is a members bucket the first watch of which reports nothing after a while.
type deafBucket struct {
	jetstream.KeyValue
	watches *atomic.Int64
	deaf    <-chan struct{}
}

func (b deafBucket) Watch(ctx context.Context, keys string, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	w, err := b.KeyValue.Watch(ctx, keys, opts...)
	if err != nil || b.watches.Add(1) > 1 {
		return w, err
	}
	return newDeafWatch(w, b.deaf), nil
}

type deafWatch struct {
	jetstream.KeyWatcher
	updates chan jetstream.KeyValueEntry
}

func newDeafWatch(w jetstream.KeyWatcher, deaf <-chan struct{}) deafWatch {
	d := deafWatch{w, make(chan jetstream.KeyValueEntry)}
	go func() {
		defer close(d.updates)
		for e := range w.Updates() {
			select {
			case <-deaf:
				continue
			default:
			}
			select {
			case <-deaf:
			case d.updates <- e:
			}
		}
	}()
	return d
}

func (d deafWatch) Updates() <-chan jetstream.KeyValueEntry { return d.updates }

// A node whose heartbeats are stored, and whose watch reports none of them, watches again.
func TestADeafWatchIsReplaced(t *testing.T) {
	srv := server(t)
	var watches atomic.Int64
	deaf := make(chan struct{})
	a := joinWith(t, srv, "a", func(c *Config, s *serving) {
		c.KV, c.Serve = deafBucket{c.KV, &watches, deaf}, s.serve
	})
	close(deaf)
	b := join(t, srv, "b", normal)
	balanced(t, map[string]*node{"a": a, "b": b})
}

func TestNodesShareJoinAndLeave(t *testing.T) {
	srv := server(t)
	a := join(t, srv, "a", normal)
	balanced(t, map[string]*node{"a": a})
	b := join(t, srv, "b", normal)
	balanced(t, map[string]*node{"a": a, "b": b})
	if len(a.Owned()) == 0 || len(b.Owned()) == 0 {
		t.Errorf("a has %v, b has %v", a.Owned(), b.Owned())
	}
	c := join(t, srv, "c", normal)
	balanced(t, map[string]*node{"a": a, "b": b, "c": c})
	testkit.Check(t, b.stop())
	if left := b.serving.partitions(); len(left) > 0 || len(b.Owned()) > 0 {
		t.Errorf("b has left and serves %v", left)
	}
	balanced(t, map[string]*node{"a": a, "c": c})
	for _, n := range []*node{a, b, c} {
		if n.serving.max > 1 {
			t.Error("a node served one partition twice at once")
		}
	}
}

func TestKilledNodeIsReplaced(t *testing.T) {
	srv := server(t)
	a, b := join(t, srv, "a", normal), join(t, srv, "b", normal)
	balanced(t, map[string]*node{"a": a, "b": b})
	b.nc.Close() // it shows no more heartbeats, and takes none away
	balanced(t, map[string]*node{"a": a})
	if len(b.Owned()) == 0 {
		t.Error("a node that hears no one dropped its partitions")
	}
}

// TestOutageMovesNothing takes the server away for longer than heartbeats are good
// for: no one gives anybody up, neither then nor when it is back.
func TestOutageMovesNothing(t *testing.T) {
	testkit.Slow(t, "waits until a node is believed to be away")
	srv := server(t)
	a, b := join(t, srv, "a", normal), join(t, srv, "b", normal)
	balanced(t, map[string]*node{"a": a, "b": b})
	before := [2][]int{a.Owned(), b.Owned()}
	served := [2]int{a.serving.total(), b.serving.total()}
	srv.Stop()
	<-time.After(2 * expiry) // the length of the outage
	srv.Restart(t)
	back := time.Now()
	kv := bucket(t, srv.Connect(t))
	testkit.Eventually(t, soon, func() error { // both have shown themselves again
		for _, name := range []string{"a", "b"} {
			e, err := kv.Get(t.Context(), "test."+name)
			if err != nil {
				return err
			}
			if e.Created().Before(back) {
				return fmt.Errorf("%s was last seen before the outage", name)
			}
		}
		return nil
	})
	if again := [2]int{a.serving.total(), b.serving.total()}; again != served {
		t.Errorf("Serve was called %v times before the outage, %v times after it", served, again)
	}
	if after := [2][]int{a.Owned(), b.Owned()}; !slices.Equal(before[0], after[0]) || !slices.Equal(before[1], after[1]) {
		t.Errorf("before the outage %v, after it %v", before, after)
	}
	c := join(t, srv, "c", normal) // and they hear again
	balanced(t, map[string]*node{"a": a, "b": b, "c": c})
}

func TestFailingServeBeginsAgain(t *testing.T) {
	srv := server(t)
	var mu sync.Mutex
	calls := map[int]int{}
	a := join(t, srv, "a", func(s *serving) func(context.Context, int) error {
		return func(ctx context.Context, p int) error {
			mu.Lock()
			calls[p]++
			n := calls[p]
			mu.Unlock()
			switch {
			case p == 3 && n == 1:
				return errors.New("disk")
			case p == 4 && n == 1:
				panic("boom")
			}
			return s.serve(ctx, p)
		}
	})
	balanced(t, map[string]*node{"a": a})
	mu.Lock()
	defer mu.Unlock()
	for p, n := range calls {
		if want := 1 + min(1, map[int]int{3: 1, 4: 1}[p]); n != want {
			t.Errorf("partition %d was served %d times, want %d", p, n, want)
		}
	}
}

// TestDrainEndsBeforeTheHeartbeat lets a node drain slowly: the other begins only
// when it is done.
func TestDrainEndsBeforeTheHeartbeat(t *testing.T) {
	srv := server(t)
	draining, release := make(chan struct{}, count), make(chan struct{})
	a := join(t, srv, "a", func(s *serving) func(context.Context, int) error {
		return func(ctx context.Context, p int) error {
			err := s.serve(ctx, p)
			draining <- struct{}{}
			<-release
			return err
		}
	})
	balanced(t, map[string]*node{"a": a})
	stopped := make(chan error)
	go func() { stopped <- a.stop() }()
	for range count {
		<-draining
	}
	testkit.Check(t, testkit.Err(bucket(t, srv.Connect(t)).Get(t.Context(), "test.a")))
	close(release)
	testkit.Check(t, <-stopped)
	if _, err := bucket(t, srv.Connect(t)).Get(t.Context(), "test.a"); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("the heartbeat of a node that left: %v", err)
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	srv := server(t)
	nc := srv.Connect(t)
	kv := bucket(t, nc)
	if _, err := kv.Get(t.Context(), "x"); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Fatal(err)
	}
	idle := goleak.IgnoreCurrent()
	s := New(Config{Service: "test", Node: "a", Count: 2, KV: kv, Version: versionOne, Log: slog.New(slog.DiscardHandler), Serve: (&serving{}).serve})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	cancel()
	testkit.Check(t, <-done)
	goleak.VerifyNone(t, idle)
}

func TestBadConfig(t *testing.T) {
	kv := bucket(t, server(t).Connect(t))
	good := Config{Service: "s", Node: "n", Count: 1, KV: kv, Version: versionOne, Log: slog.New(slog.DiscardHandler), Serve: (&serving{}).serve}
	for name, spoil := range map[string]func(*Config){
		"service": func(c *Config) { c.Service = "a.b" },
		"node":    func(c *Config) { c.Node = "pod.local" },
		"count":   func(c *Config) { c.Count = 0 },
		"kv":      func(c *Config) { c.KV = nil },
		"version": func(c *Config) { c.Version = nil },
		"serve":   func(c *Config) { c.Serve = nil },
		"expiry":  func(c *Config) { c.Expiry = 500 * time.Millisecond },
	} {
		c := good
		spoil(&c)
		if err := New(c).Run(t.Context()); err == nil {
			t.Errorf("%s: a bad config was taken", name)
		}
	}
}
