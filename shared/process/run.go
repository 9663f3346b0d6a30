package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// flushTimeout bounds a goodbye: what a process has published must leave, but not hold up the stop.
const flushTimeout = 2 * time.Second

// Env is what a service is built from.
type Env struct {
	NATS *nats.Conn
	// Connect makes another connection, for a purpose that must not hold up, or be
	// held up by, what goes over NATS. The caller closes it.
	Connect      func(ctx context.Context, purpose string) (*nats.Conn, error)
	Partitioning topology.Partitioning
	// Replies says which reply subjects are answered; nil is the default.
	Replies *natsrpc.Replies
	// Provisions tells that this process may create streams: hint streams that were lost.
	Provisions bool
	// Node names this process among the members.
	Node string
	// Clock tells the server's time; nil = the server is in this process.
	Clock   *clock.Clock
	Log     *slog.Logger
	Tracing *telemetry.Tracing
	Metrics *telemetry.Metrics
}

// Service is a service's root: it runs until its context ends, and then drains.
type Service interface {
	lifecycle.Runner
	// Ready is closed when it serves.
	Ready() <-chan struct{}
	// Check is a condition of being ready besides Ready.
	Check() error
	// Warn is what people are to know of and readiness does not depend on; nil if there is nothing.
	Warn() error
}

// Serving is a service's part of readiness: nil where it serves.
func Serving(s Service) error {
	select {
	case <-s.Ready():
	default:
		return errors.New("not ready yet")
	}
	return s.Check()
}

// Run runs the service called name until ctx ends or it fails. The health pages
// answer first and last, so that a start that waits for NATS can be seen to live.
func Run(ctx context.Context, name string, cfg Config, build func(Env) (Service, error), logs io.Writer) (err error) {
	if cfg.Node == "" {
		cfg.Node = NodeName()
	}
	base, err := telemetry.NewLogger(cfg.Log, logs)
	if err != nil {
		return err
	}
	log := base.With("service", name, "node", cfg.Node)
	metrics, err := telemetry.NewMetrics()
	if err != nil {
		return err
	}
	tracing, err := telemetry.NewTracing(ctx, "yard-"+name, cfg.Node, metrics)
	if err != nil {
		return err
	}
	defer func() {
		if failed := tracing.Shutdown(ctx); failed != nil {
			log.Warn("tracing did not end well", "error", failed)
		}
	}()
	inboxes, err := topology.NewInboxes(cfg.InboxPrefixes)
	if err != nil {
		return fmt.Errorf("inbox_prefixes: %w", err)
	}
	p := &body{
		name: name, cfg: cfg, build: build, log: log, ready: make(chan struct{}),
		env: Env{
			Node: cfg.Node, Clock: clock.New(), Log: log, Tracing: tracing, Metrics: metrics, Provisions: cfg.Provision.Enabled,
			Replies: natsrpc.NewReplies(inboxes, name, metrics, log),
		},
		health: telemetry.NewHealth(cfg.HTTP, metrics),
	}
	p.health.AddCheck("stopping", ctx.Err) // not ready from the signal on, while it drains
	p.health.AddCheck("nats", p.connected)
	p.health.AddCheck(name, p.serving)
	p.watch = &clock.Watch{Clock: p.env.Clock, Ask: p.serverTime, SkewMax: cfg.Clock.SkewMax, Log: log}
	p.health.AddCheck("clock", p.watch.Check)
	showSkew(metrics, p.env.Clock)
	p.health.AddWarning("cluster", p.warning)

	log.Info("starting", "version", Version, "revision", revision())
	defer context.AfterFunc(ctx, func() { log.Info("stopping") })()
	group := lifecycle.Group{DrainTimeout: 2 * cfg.StopTimeout} // the body stops its own parts within theirs
	group.Add("health", p.health)
	group.Add("memory", lifecycle.Func(ReturnMemory))
	group.Add(name, p)
	err = group.Run(ctx)
	log.Info("stopped", "clean", err == nil)
	return err
}

// body is the part of a process that needs NATS.
type body struct {
	name   string
	cfg    Config
	build  func(Env) (Service, error)
	env    Env
	health *telemetry.Health
	log    *slog.Logger
	ready  chan struct{}
	conn   atomic.Pointer[nats.Conn]
	watch  *clock.Watch
	// service is set before ready is closed.
	service Service
}

// Run connects, makes the cluster ready, and runs the service.
func (p *body) Run(ctx context.Context) error {
	if addr := p.health.Addr(); addr != "" {
		p.log.Info("health pages", "address", addr)
	}
	nc, err := natsrpc.Connect(ctx, p.cfg.NATS, "yard-"+p.name+" "+p.cfg.Node, p.log)
	if err != nil {
		return stoppedOr(ctx, err)
	}
	p.conn.Store(nc)
	defer p.disconnect(nc)

	env := p.env
	env.NATS = nc
	env.Connect = func(ctx context.Context, purpose string) (*nats.Conn, error) {
		return natsrpc.Connect(ctx, p.cfg.NATS, "yard-"+p.name+" "+purpose+" "+p.cfg.Node, p.log)
	}
	want := topology.Partitioning{History: p.cfg.HistoryPartitions, Matching: p.cfg.MatchingShards}
	if env.Partitioning, err = Cluster(ctx, nc, want, p.cfg.Provision, p.log); err != nil {
		return stoppedOr(ctx, err)
	}
	service, err := p.build(env)
	if err != nil {
		return err
	}
	p.service = service
	owner, _ := service.(Owner)
	group := lifecycle.Group{DrainTimeout: p.cfg.StopTimeout}
	group.Add("presence", &Presence{Service: p.name, Node: p.cfg.Node, NATS: nc, Replies: env.Replies, Health: p.health, Owner: owner, Clock: env.Clock, Log: p.log})
	group.Add("clock", p.watch) // ready when it is right: only then is the service let in
	group.Add(p.name, service)
	group.Add("ready", lifecycle.Func(func(context.Context) error {
		close(p.ready)
		p.log.Info("ready", "history_partitions", env.Partitioning.History, "matching_shards", env.Partitioning.Matching)
		return nil
	}))
	return group.Run(ctx)
}

// disconnect lets what was published leave before the connection goes.
func (p *body) disconnect(nc *nats.Conn) {
	if nc.IsConnected() {
		if err := nc.FlushTimeout(flushTimeout); err != nil {
			p.log.Warn("the last messages may not have left", "error", err)
		}
	}
	nc.Close()
}

func (p *body) connected() error {
	switch nc := p.conn.Load(); {
	case nc == nil:
		return errors.New("not connected yet")
	case !nc.IsConnected():
		return fmt.Errorf("connection is %v", nc.Status())
	default:
		return nil
	}
}

func (p *body) serving() error {
	select {
	case <-p.ready:
		return Serving(p.service)
	default:
		return errors.New("not ready yet")
	}
}

func (p *body) warning() error {
	select {
	case <-p.ready:
		return p.service.Warn()
	default:
		return nil
	}
}

// stoppedOr makes a clean stop of an error that came from being stopped.
func stoppedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
