package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/auth"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/natsserver"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/redischild"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/scratch"
	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Stack is a running system.
type Stack struct {
	// URL is where NATS clients connect; "" without a socket.
	URL string
	// TablesAt tells where the tables are, for people: "memory", or a Redis's URL.
	TablesAt string
	// DataDir holds the streams.
	DataDir string
	// Auth is the folder of the users, "" where everybody may do everything.
	Auth string
	// Partitioning is the cluster's.
	Partitioning topology.Partitioning
	// Metrics are those of all services.
	Metrics *telemetry.Metrics

	server  *natsserver.Server
	inboxes topology.Inboxes
	redis   *redischild.Child // nil unless it is our own
	log     *slog.Logger
	conns   []*nats.Conn
	traces  []*telemetry.Tracing
	scratch *scratch.Dir // nil until something needs it
	stop    context.CancelFunc
	done    chan struct{}
	err     error // set before done is closed
}

// Start starts a stack and returns when it serves. The context bounds the start
// only. The caller closes the stack.
func Start(ctx context.Context, cfg Config) (*Stack, error) {
	metrics, err := telemetry.NewMetrics()
	if err != nil {
		return nil, err
	}
	s := &Stack{Metrics: metrics, log: cfg.Log, done: make(chan struct{}), stop: func() {}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	parts, err := s.prepare(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, s.release(ctx))
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	go func() {
		err := parts.Run(running)
		s.err = errors.Join(err, s.release(running))
		if err != nil {
			s.log.Error("the stack ended", "error", err)
		}
		close(s.done)
	}()
	select {
	case <-parts.Ready():
		return s, nil
	case <-s.done:
		return nil, errors.Join(errors.New("the stack did not start"), s.err)
	case <-ctx.Done():
		stop()
		<-s.done
		return nil, errors.Join(ctx.Err(), s.err)
	}
}

// prepare starts the server, makes the cluster, and lists the parts that run on it.
func (s *Stack) prepare(ctx context.Context, cfg Config) (*lifecycle.Group, error) {
	url, binary, err := cfg.tables()
	if err != nil {
		return nil, err
	}
	if s.inboxes, err = topology.NewInboxes(cfg.prefixes()); err != nil {
		return nil, err
	}
	if err := s.listen(ctx, cfg); err != nil {
		return nil, err
	}
	nc, err := s.connect(string(permissions.Provisioner))
	if err != nil {
		return nil, err
	}
	s.Partitioning, err = process.Cluster(ctx, nc, cfg.Partitioning, process.Provision{Enabled: true, Replicas: 1, Standard: embeddedPartitioning()}, s.log)
	if err != nil {
		return nil, err
	}

	parts := new(lifecycle.Group)
	health := telemetry.NewHealth(cfg.HTTP, s.Metrics)
	parts.Add("health", health)
	if binary != "" {
		// Not in the data directory: its path may be too long for a socket.
		dir, err := s.temporary()
		if err != nil {
			return nil, err
		}
		s.redis = redischild.New(binary, dir, s.log.With("service", "redis"))
		parts.Add("redis", s.redis)
		url = s.redis.URL()
	}
	s.describeTables(url, binary)
	all := DefaultServices()
	if cfg.Services != nil {
		all = *cfg.Services
	}
	if all, err = withTables(all, url); err != nil {
		return nil, err
	}
	if url != "" && binary == "" {
		if err := reachRedis(ctx, url); err != nil {
			return nil, err
		}
	}
	return parts, s.addServices(ctx, parts, health, all)
}

// listen starts the NATS server.
func (s *Stack) listen(ctx context.Context, cfg Config) (err error) {
	if cfg.DataDir == "" {
		dir, err := s.temporary()
		if err != nil {
			return err
		}
		cfg.DataDir = filepath.Join(dir, "data")
	}
	config := ""
	if s.Auth = cfg.Auth; s.Auth != "" {
		config = filepath.Join(s.Auth, auth.ConfigFile)
	}
	s.server, err = natsserver.Start(ctx, natsserver.Config{
		DataDir: cfg.DataDir, Auth: config, Host: cfg.Host, Port: cfg.Port, NoSocket: cfg.NoSocket, Sync: natsserver.Sync(cfg.Sync),
		Log: s.log.With("service", "nats"),
	})
	if err != nil {
		return err
	}
	s.DataDir = cfg.DataDir
	if !cfg.NoSocket {
		s.URL = s.server.ClientURL()
	}
	return nil
}

// temporary is the folder for what ends with the stack.
func (s *Stack) temporary() (string, error) {
	if s.scratch == nil {
		dir, err := scratch.New()
		if err != nil {
			return "", err
		}
		s.scratch = dir
	}
	return s.scratch.Path, nil
}

func (s *Stack) describeTables(url, binary string) {
	switch {
	case binary != "":
		s.TablesAt = url
		s.log.Info("tables and slots are in a redis-server started here", "binary", binary)
	case url != "":
		s.TablesAt = redact(url)
		s.log.Info("tables and slots are in Redis", "url", s.TablesAt)
	default:
		s.TablesAt = string(TablesMemory)
		s.log.Info("tables and slots are in memory, for this process only")
	}
}

// connect makes a connection of a service to the server in this process; it lives as
// long as the stack.
func (s *Stack) connect(name string) (*nats.Conn, error) {
	nc, err := natsrpc.ConnectInProcess(s.server, s.user(name), "yard-"+name, s.log)
	if err != nil {
		return nil, err
	}
	s.conns = append(s.conns, nc)
	return nc, nil
}

// user is how a service logs in.
func (s *Stack) user(service string) natsrpc.ConnConfig {
	if s.Auth == "" {
		return natsrpc.ConnConfig{}
	}
	u := permissions.User{Role: permissions.Role(service)}
	return natsrpc.ConnConfig{NKeySeed: auth.SeedFile(s.Auth, u), InboxPrefix: u.Inbox()}
}

// Connect makes a connection to the stack in this process, without a socket. It may do
// everything, also where others may not; with Auth its inboxes are an operator's. The
// caller closes it.
func (s *Stack) Connect(name string) (*nats.Conn, error) {
	login := natsrpc.ConnConfig{}
	if s.Auth != "" {
		login.InboxPrefix = topology.OperatorInbox("stack")
	}
	return natsrpc.ConnectInProcess(s.server, login, name, s.log, s.server.Own())
}

// Dial connects a NATS client to the stack in this process, without a socket; see nats.SetCustomDialer.
func (s *Stack) Dial() (net.Conn, error) { return s.server.InProcessConn() }

// Reload has the server take the users that Auth holds by now.
func (s *Stack) Reload() error { return s.server.Reload() }

// prefixes are the inboxes that are answered.
func (c Config) prefixes() []string {
	if c.Auth == "" {
		return []string{topology.InboxPrefix}
	}
	return []string{topology.TenantInboxes}
}

// RedisPID is the process of the redis-server of our own; 0 if there is none.
func (s *Stack) RedisPID() int {
	if s.redis == nil {
		return 0
	}
	return s.redis.PID()
}

// Done is closed when the stack has ended, by Close or by a failure.
func (s *Stack) Done() <-chan struct{} { return s.done }

// Err tells why the stack ended, once Done is closed; nil after a clean end.
func (s *Stack) Err() error { return s.err }

// Close drains and stops all parts, the services first, and returns when
// everything is on disk, or with ctx's error when that ends first; the stop goes
// on then. It may be called more than once.
func (s *Stack) Close(ctx context.Context) error {
	s.stop()
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("the stack is still stopping: %w", ctx.Err())
	}
}

// release gives back what prepare took, in reverse.
func (s *Stack) release(ctx context.Context) error {
	var failed []error
	for _, t := range s.traces {
		failed = append(failed, t.Shutdown(ctx))
	}
	for _, nc := range s.conns {
		nc.Close()
	}
	if s.server != nil {
		s.server.Stop()
	}
	if s.scratch != nil {
		failed = append(failed, s.scratch.Remove())
	}
	return errors.Join(failed...)
}
