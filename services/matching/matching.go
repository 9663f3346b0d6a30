// Package matching pairs ready tasks with waiting polls.
//
// Owns: the parts of the service and how they fit: one shard per owned number, all
// on the same tables. Never does: import another service; it knows their contracts,
// and history alone decides who gets a task.
//
// On failure: a shard whose owner dies is served by another node within seconds;
// its polls are repeated by the workers, its hints come again.
package matching

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/api"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/memtable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/redistable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Deps is what the service works with. All fields but Tracing and Metrics are
// required.
type Deps struct {
	NATS         *nats.Conn
	Partitioning topology.Partitioning
	// Node names this process among the members.
	Node    string
	Config  Config
	Log     *slog.Logger
	Tracing *telemetry.Tracing
	Metrics *telemetry.Metrics
}

// Service is the matching service of one process.
type Service struct {
	Deps
	js      jetstream.JetStream
	metrics *shard.Metrics
	ready   chan struct{}
	share   atomic.Pointer[ownership.Share]

	mu sync.Mutex
	// running are the shards served just now.
	running []*shard.Shard
}

// New makes the service.
func New(d Deps) (*Service, error) {
	if d.NATS == nil || d.Log == nil || d.Node == "" || d.Partitioning.History < 1 || d.Partitioning.Matching < 1 {
		return nil, errors.New("matching: NATS, Log, Node and Partitioning are required")
	}
	js, err := jetstream.New(d.NATS)
	if err != nil {
		return nil, fmt.Errorf("matching: %w", err)
	}
	return &Service{
		Deps: d, js: js, metrics: shard.NewMetrics(d.Metrics, d.Partitioning.Matching), ready: make(chan struct{}),
	}, nil
}

// Ready is closed when the service serves its first share of the shards.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// Check is a condition of being ready besides Ready: an error where this node may
// serve no shard.
func (s *Service) Check() error { return s.share.Load().Check() }

// Run serves the shards that this node owns until ctx ends, then drains.
func (s *Service) Run(ctx context.Context) error {
	config, err := s.js.KeyValue(ctx, topology.ConfigBucket)
	if err != nil {
		return fmt.Errorf("open the config bucket: %w", err)
	}
	members, err := s.js.KeyValue(ctx, topology.MembersBucket)
	if err != nil {
		return fmt.Errorf("open the members bucket: %w", err)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	types, err := catalog.Watch(watching, config, s.limitsChanged)
	if err != nil {
		return fmt.Errorf("watch the types: %w", err)
	}
	tables, closeTables := s.tables()
	defer closeTables()
	owner := ownership.New(ownership.Config{
		Service: "matching", Node: s.Node, Count: s.Partitioning.Matching, KV: members, Log: s.Log,
		Version: types.Version, Metrics: s.Metrics,
		Serve: func(ctx context.Context, m int) error { return s.serve(ctx, m, tables(m), types) },
	})
	s.share.Store(owner)
	go func() {
		select {
		case <-owner.Ready():
			close(s.ready)
		case <-watching.Done():
		}
	}()
	return owner.Run(ctx)
}

// tables returns what makes a shard's tables, and what closes them all.
func (s *Service) tables() (of func(m int) shard.Tables, closeAll func()) {
	if s.Config.Tables == TablesMemory {
		store := memtable.New()
		return func(m int) shard.Tables { return store.Shard(m) }, func() {}
	}
	client := redistable.Connect(s.Config.Redis)
	calls := s.Metrics.Counter("yard_matching_redis_calls_total", "Round trips to Redis.")
	of = func(m int) shard.Tables { return redistable.New(client, m, func(n int) { calls.Add(int64(n)) }) }
	return of, func() {
		if err := client.Close(); err != nil {
			s.Log.Warn("close the connection to Redis", "error", err)
		}
	}
}

// serve owns one shard until ctx ends.
func (s *Service) serve(ctx context.Context, m int, tables shard.Tables, types *catalog.Catalog) error {
	log := s.Log.With("shard", m)
	port, err := api.New(s.NATS, m, s.Partitioning, log)
	if err != nil {
		return err
	}
	one := shard.New(shard.Deps{
		Shard: m, Partitions: s.Partitioning.History,
		VerdictsTo: port.VerdictsTo(), AnswerBytesMax: port.AnswerBytesMax(), Quarantine: s.quarantine(),
		Tables: tables, Outbox: port, History: port, Limits: limits{types}, LogVersion: types.WriteVersion,
		Config: s.Config.Shard, Metrics: s.metrics, Tracing: s.Tracing, Log: log,
	})
	s.add(one)
	defer s.remove(one)
	return port.Serve(ctx, one)
}

// quarantine is none where this process alone grabs: its memory is lost with the
// process, and by the time another starts, what it had sent is in the log.
func (s *Service) quarantine() time.Duration {
	if s.Config.Tables == TablesMemory {
		return 0
	}
	return shard.Quarantine
}

func (s *Service) add(one *shard.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, one)
}

func (s *Service) remove(one *shard.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(other *shard.Shard) bool { return other == one })
}

// limitsChanged tells all shards that a domain's types have changed.
func (s *Service) limitsChanged(domain string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.running {
		one.LimitsChanged(domain)
	}
}

// limits reads the limits out of the catalog.
type limits struct{ types *catalog.Catalog }

// Limit implements shard.Limits.
func (l limits) Limit(domain, typ string) int {
	if t, ok := l.types.Type(domain, typ); ok {
		return int(t.MaxConcurrency)
	}
	return 0
}

// Limited implements shard.Limits.
func (l limits) Limited(domain string) []string {
	var limited []string
	for _, t := range l.types.Types(domain) {
		if t.MaxConcurrency > 0 {
			limited = append(limited, t.Name)
		}
	}
	return limited
}
