package yardtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
)

const (
	// patience bounds each step that the engine itself must take: its start, its stop, a question. A healthy one takes
	// milliseconds.
	patience = 90 * time.Second
	// syncEvery keeps the disk out of tests: what is stored survives Restart, and need not survive a power cut.
	syncEvery = "8760h"
	// reconnectWait is how long a client waits between two tries to reach an engine that restarts.
	reconnectWait = 10 * time.Millisecond
)

// Engine is a running engine and one domain of it, which is empty at first. It is safe for concurrent use, apart
// from Restart.
type Engine struct {
	// Client speaks for the domain. It survives Restart, and is closed when the test ends.
	Client *yard.Client
	host   *host
}

// host is an engine, which its domains share.
type host struct {
	dir string
	// faked: its time is a bubble's, so nothing of it may be a socket's.
	faked bool
	// barrier submits to a domain of our own, see caughtUp.
	barrier *yard.Client

	mu      sync.Mutex
	stack   *stack.Stack
	domains int
}

// New starts an engine and makes a domain. The engine ends with the test; until then its subtests may share it, each
// with a domain of its own from Fresh.
func New(t testing.TB) *Engine {
	t.Helper()
	return start(t, &host{dir: t.TempDir()})
}

func start(t testing.TB, h *host) *Engine {
	t.Helper()
	h.start(t)
	t.Cleanup(func() { h.stop(t) })
	e := &Engine{host: h}
	h.barrier = e.connect(t, h.domain(t))
	return e.Fresh(t)
}

// Fresh makes another domain, which is empty, on the same engine. Its client is closed when t ends.
func (e *Engine) Fresh(t testing.TB) *Engine {
	t.Helper()
	return &Engine{Client: e.connect(t, e.host.domain(t)), host: e.host}
}

// Domain is the name of the domain.
func (e *Engine) Domain() string { return e.Client.Domain() }

// URL is where NATS clients connect, such as nats://127.0.0.1:41234. Restart changes it. In FakeTime it is "".
func (e *Engine) URL() string { return e.host.url() }

// Connect makes another client of the domain, on a connection of its own. It is closed when t ends. To close it earlier
// is how a process crashes: workers of it vanish in the middle of their attempts, and whatever their handlers return
// is not delivered. The engine gives their tasks to others when the heartbeat or the attempt times out.
func (e *Engine) Connect(t testing.TB) *yard.Client {
	t.Helper()
	return e.connect(t, e.Domain())
}

// Restart stops the engine and starts it again with what it had stored. Calls and workers of clients go on when it is
// back. It must not be called side by side with itself.
func (e *Engine) Restart(t testing.TB) {
	t.Helper()
	e.host.stop(t)
	e.host.start(t)
}

func (e *Engine) connect(t testing.TB, domain string) *yard.Client {
	t.Helper()
	c, err := yard.Connect(nats.DefaultURL, domain, yard.WithNATSOptions(
		nats.SetCustomDialer(e.host), nats.PingInterval(pace.Of(time.Second)), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait),
	))
	if err != nil {
		t.Fatalf("yardtest: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// start starts the engine on what is in its folder. One partition of each kind is the quickest to be ready, and has
// one order of all that is submitted, see caughtUp.
func (h *host) start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	s, err := stack.Start(ctx, stack.Config{
		DataDir: h.dir, NoSocket: h.faked, Sync: syncEvery, Tables: stack.TablesMemory, Partitioning: topology.Partitioning{History: 1, Matching: 1},
	})
	if err != nil {
		t.Fatalf("yardtest: the engine did not start: %v", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stack = s
}

func (h *host) stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	h.mu.Lock()
	s := h.stack
	h.mu.Unlock()
	if err := s.Close(ctx); err != nil {
		t.Errorf("yardtest: the engine did not stop well: %v", err)
	}
}

// domain makes a domain and returns its name.
func (h *host) domain(t testing.TB) string {
	t.Helper()
	h.mu.Lock()
	h.domains++
	name, s := fmt.Sprintf("test-%d", h.domains), h.stack
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nc, err := s.Connect("yardtest")
	if err != nil {
		t.Fatalf("yardtest: %v", err)
	}
	defer nc.Close()
	admin, err := yard.NewAdmin(nc)
	if err == nil {
		_, err = admin.PutDomain(ctx, yard.Domain{Name: name, Events: true})
	}
	if err != nil {
		t.Fatalf("yardtest: domain %s: %v", name, err)
	}
	return name
}

func (h *host) url() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stack.URL
}

// Dial connects to where the engine is now, whatever address it had when the client was made.
func (h *host) Dial(network, _ string) (net.Conn, error) {
	if h.faked {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.stack.Dial()
	}
	u, err := url.Parse(h.url())
	if err != nil {
		return nil, err
	}
	return net.DialTimeout(network, u.Host, patience)
}
