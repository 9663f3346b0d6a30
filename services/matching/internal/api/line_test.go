package api_test

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/api"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// TestMain runs more tests side by side than there are cores: most of the time they
// wait for servers and for the disk.
func TestMain(m *testing.M) {
	testkit.SideBySide(6)
	natskit.VerifyTestMain(m)
}

const (
	domain   = "shop"
	tasklist = "mail"
	patience = 60 * time.Second
)

var parts = topology.Partitioning{History: 2, Matching: 1}

func testLog() *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

// line is a real NATS.
type line struct {
	t      testing.TB
	server *natskit.Server
	nc     *nats.Conn
	js     jetstream.JetStream
}

func newLine(t testing.TB) *line {
	server := natskit.Run(t)
	l := &line{t: t, server: server, nc: server.Connect(t, nats.CustomInboxPrefix(topology.ServiceInbox("test")))}
	var err error
	if l.js, err = jetstream.New(l.nc); err == nil {
		err = provision.Apply(t.Context(), l.js, parts, provision.Options{})
	}
	testkit.NoError(t, err)
	return l
}

func (l *line) port(epoch uint64) *api.Port {
	l.t.Helper()
	return l.portOn(l.server.Connect(l.t), epoch)
}

func (l *line) portOn(nc *nats.Conn, epoch uint64) *api.Port {
	l.t.Helper()
	return l.portWith(nc, epoch, nil)
}

func (l *line) portWith(nc *nats.Conn, epoch uint64, replies *natsrpc.Replies) *api.Port {
	l.t.Helper()
	p, err := api.New(api.Config{
		NATS: nc, Partitioning: parts, Epoch: epoch, LogVersion: func() uint32 { return 1 }, Log: testLog(),
		Replies: replies, Provisions: true,
	})
	testkit.NoError(l.t, err)
	return p
}

// note is a core that decides nothing: it notes what comes in, and asks for what it is given.
type note struct {
	shard *shard.Shard
	// done is what Serve returned.
	done chan error
	stop func()

	mu   sync.Mutex
	in   match.Inputs
	next match.Effects
}

// Step implements shard.Core.
func (n *note) Step(in *match.Inputs, _ match.Now, fx *match.Effects) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.in.Hints = append(n.in.Hints, in.Hints...)
	n.in.Polls = append(n.in.Polls, in.Polls...)
	n.in.Verdicts = append(n.in.Verdicts, in.Verdicts...)
	n.in.Bounced = append(n.in.Bounced, in.Bounced...)
	n.in.Freed = append(n.in.Freed, in.Freed...)
	n.in.Restore = append(n.in.Restore, in.Restore...)
	n.in.Branches = append(n.in.Branches, in.Branches...)
	n.in.GivenUp = append(n.in.GivenUp, in.GivenUp...)
	n.in.Unmoved = append(n.in.Unmoved, in.Unmoved...)
	n.in.HintsLost, n.in.ReleasesLost, n.in.Broke = n.in.HintsLost || in.HintsLost, n.in.ReleasesLost || in.ReleasesLost, n.in.Broke || in.Broke
	*fx, n.next = n.next, match.Effects{}
	fx.Drained = in.Drain
}

// Tasklist implements shard.Core.
func (n *note) Tasklist(string, string) []match.PartitionCount { return nil }

func (n *note) Pollers(string, string, string, int, match.Now) report.Page {
	return report.Page{}
}

func (n *note) FullLimits(int, match.Now) []match.FullLimit { return nil }

func (n *note) LimitsInUse(string, int, match.Now) (all []limit.InUse, leftOut int) {
	return nil, 0
}

func (n *note) Explain(match.Kind, int, match.Now) match.Explained { return match.Explained{} }

// do has the core ask for fx.
func (n *note) do(fx match.Effects) {
	n.mu.Lock()
	n.next = fx
	n.mu.Unlock()
	n.shard.Put(func(*match.Inputs) {})
}

// saw waits until what has come in is as cond wants it.
func (n *note) saw(t *testing.T, cond func(in *match.Inputs) error) {
	t.Helper()
	testkit.Eventually(t, patience, func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		return cond(&n.in)
	})
}

// serve serves the shard as one owner, on a core that decides nothing.
func (l *line) serve(epoch uint64) *note { return l.serveOn(l.port(epoch)) }

// serving is a line and an owner of the first epoch that is heard.
func serving(t *testing.T) (*line, *note) {
	t.Helper()
	l := newLine(t)
	n := l.serve(1)
	l.served(t)
	return l, n
}

func (l *line) serveOn(port *api.Port) *note {
	n := &note{done: make(chan error, 1)}
	n.shard = shard.New(shard.Deps{
		Partitions: parts.History, Core: n, Clock: shard.NewClock(nil), Outbox: port, History: port,
		Open: func(context.Context) error { return nil }, RoundTrip: port.RoundTrip,
		Metrics: shard.NewMetrics(nil, parts.Matching), Log: testLog(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { n.done <- port.Serve(ctx, n.shard) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		l.t.Log("an owner has ended:", <-n.done)
	})
	l.t.Cleanup(n.stop)
	return n
}
