// Package matching pairs ready tasks with waiting polls.
//
// Owns: the parts of the service and how they fit: one shard per owned number, all
// on the same tables. Never does: import another service; it knows their contracts,
// and history alone decides who gets a task.
//
// On failure: a shard whose owner dies is served by another node within seconds, in an
// epoch of its own: it fences the one before, sends again what that one may not have sent,
// and is then shown to the frontends, which end the polls of older epochs. A superseded owner
// stops at once, and ownership decides again.
package matching

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/api"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/memtable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/redistable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tables"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Deps is what the service works with. All fields but Connect, Replies, Provisions, Clock, Tracing and
// Metrics are required.
type Deps struct {
	process.Env
	Config Config
}

// Service is the matching service of one process.
type Service struct {
	Deps
	js      jetstream.JetStream
	metrics *shard.Metrics
	ready   chan struct{}
	share   atomic.Pointer[ownership.Share]
	// types are the settings; nil before Run.
	types   atomic.Pointer[catalog.Catalog]
	changes *changes
	// redis is nil where the tables are in memory, and before Run.
	redis atomic.Pointer[redistable.Health]

	mu sync.Mutex
	// running are the shards served just now.
	running []*shard.Shard
	// begun is closed for each shard when it was opened here once, or given up; begin closes it.
	begun []chan struct{}
	begin []func()
	// above are by shard what the next epoch is to be higher than; only who serves a shard uses its.
	above []uint64
	full  fullLimits
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
	s := &Service{
		Deps: d, js: js, metrics: shard.NewMetrics(d.Metrics, d.Partitioning.Matching), ready: make(chan struct{}),
	}
	s.changes = newChanges(s.settings, s.limitsChanged)
	for range d.Partitioning.Matching {
		begun := make(chan struct{})
		s.begun, s.begin = append(s.begun, begun), append(s.begin, sync.OnceFunc(func() { close(begun) }))
	}
	s.above = make([]uint64, d.Partitioning.Matching)
	d.Metrics.GaugesFunc(s.full.show, signals.LimitFull)
	return s, nil
}

// Ready is closed when the service serves its first share of the shards: each is open, so
// history must be there.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// Owned is the shards that this process serves.
func (s *Service) Owned() ownership.Report { return s.share.Load().Report() }

// Check is a condition of being ready besides Ready: an error where this node may
// serve no shard, or does not reach Redis: another node may, and a roll-out with a wrong
// address must not go on.
func (s *Service) Check() error { return errors.Join(s.share.Load().Check(), s.redis.Load().Check()) }

// Warn is an error where shards have no owner.
func (s *Service) Warn() error { return s.share.Load().Warn() }

// Run serves the shards that this node owns until ctx ends, then drains.
func (s *Service) Run(ctx context.Context) error {
	config, err := provision.Bucket(ctx, s.js, topology.ConfigBucket, s.Log)
	if err != nil {
		return fmt.Errorf("open the config bucket: %w", err)
	}
	members, err := provision.Bucket(ctx, s.js, topology.MembersBucket, s.Log)
	if err != nil {
		return fmt.Errorf("open the members bucket: %w", err)
	}
	epochs, err := provision.Bucket(ctx, s.js, topology.CheckpointsBucket, s.Log)
	if err != nil {
		return fmt.Errorf("open the checkpoints bucket: %w", err)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	loading := context.AfterFunc(ctx, stop) // of a cluster that does not answer
	changed := make(chan struct{}, 1)
	types, err := catalog.WatchEvery(watching, config, pace.Of(catalog.CompareEvery), func(domain string) {
		s.changes.changed(domain)
		select {
		case changed <- struct{}{}:
		default: // they are looked at anyway
		}
	})
	loading()
	if err != nil {
		return fmt.Errorf("watch the types: %w", err)
	}
	s.types.Store(types)
	go s.endPauses(watching, types, changed)
	of, closeTables, err := s.tables()
	if err != nil {
		return err
	}
	defer closeTables()
	owner := ownership.New(ownership.Config{
		Service: "matching", Node: s.Node, Count: s.Partitioning.Matching, KV: members, Log: s.Log,
		Version: types.Version, Metrics: s.Metrics,
		Unfenced: true, // a poll that is parked here is in no log
		Serve:    func(ctx context.Context, m int) error { return s.serve(ctx, m, of(m), types, epochs) },
	})
	s.share.Store(owner)
	go owner.AwaitFirst(watching, func(m int) <-chan struct{} { return s.begun[m] }, s.ready)
	return owner.Run(ctx)
}

// tables returns what makes a shard's tables, and what closes them all.
func (s *Service) tables() (of func(m int) tables.Tables, closeAll func(), err error) {
	if s.Config.Tables == TablesMemory {
		store := memtable.New()
		return func(m int) tables.Tables { return store.Shard(m) }, func() {}, nil
	}
	client, err := redistable.Connect(s.Config.Redis)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to Redis: %w", err)
	}
	health := redistable.NewHealth(client)
	s.redis.Store(health)
	ctx, stop := context.WithCancel(context.Background())
	var looking sync.WaitGroup
	looking.Go(func() { _ = health.Run(ctx) }) // it returns nil
	calls := map[string]*telemetry.Histogram{}
	for _, operation := range redistable.Operations() {
		calls[operation] = s.Metrics.Histogram(signals.RedisCallDuration, operation)
	}
	called := func(operation string, took time.Duration) { calls[operation].Record(took, 1) }
	of = func(m int) tables.Tables { return redistable.New(client, m, called) }
	return of, func() {
		stop()
		looking.Wait()
		if err := client.Close(); err != nil {
			s.Log.Warn("close the connection to Redis", "error", err)
		}
	}, nil
}

// serve owns one shard, in an epoch of its own, until ctx ends or another owner takes the
// next epoch: that is shard.ErrOvertaken.
func (s *Service) serve(ctx context.Context, m int, tables tables.Tables, types *catalog.Catalog, epochs jetstream.KeyValue) error {
	defer s.begin[m]()
	term, err := ownership.TakeEpoch(ctx, epochs, topology.MatchingEpoch(m), s.above[m])
	if err != nil {
		return err
	}
	log := s.Log.With("shard", m, "epoch", term.Number())
	port, err := api.New(api.Config{
		NATS: s.NATS, Partitioning: s.Partitioning, Shard: m, Epoch: term.Number(),
		Replies: s.Replies, Provisions: s.Provisions, LogVersion: types.WriteVersion, Log: log,
	})
	if err != nil {
		return err
	}
	now, known := shard.NewClock(s.Clock), limits{types, s.Clock}
	core := match.New(s.matchConfig(m, term.Number(), port.AnswerBytesMax()), known, now.Now())
	one := shard.New(shard.Deps{
		Shard: m, Partitions: s.Partitioning.History, Core: core, Clock: now,
		Tables: tables, Outbox: port, History: port,
		Open:      func(ctx context.Context) error { return s.opened(m, term.Open(ctx)) },
		RoundTrip: port.RoundTrip,
		Metrics:   s.metrics, Tracing: s.Tracing, Log: log,
	})
	var watching sync.WaitGroup
	defer watching.Wait()
	held, stop := term.Hold(ctx, log)
	defer stop()
	watching.Go(func() { s.watchFull(held, m, one) })
	context.AfterFunc(held, func() {
		if errors.Is(context.Cause(held), ownership.ErrSuperseded) {
			one.Overtaken()
		}
	})
	s.add(one)
	defer s.remove(one)
	err = port.Serve(ctx, one)
	s.above[m] = above(ctx, err, term)
	return err
}

// above is what the epoch after a term is to be higher than. If who served it was overtaken, and yet no one has
// taken a later epoch, the key is of an older time than the log and the streams, which know a higher epoch:
// doubling soon reaches it.
func above(ctx context.Context, ended error, term *ownership.Term) uint64 {
	if !errors.Is(ended, shard.ErrOvertaken) {
		return 0
	}
	if newest, err := term.Newest(ctx); err != nil || !newest {
		return 0
	}
	return 2 * term.Number()
}

// pollsEvery is how often a shard looks after polls for which nothing waits.
const pollsEvery = 250 * time.Millisecond

// matchConfig is what the core of one ownership is to know.
func (s *Service) matchConfig(m int, epoch uint64, answerBytesMax int) match.Config {
	return match.Config{
		Shard: m, Shards: s.Partitioning.Matching, Partitions: s.Partitioning.History,
		Epoch: epoch, Seed: rand.Uint64(), AnswerBytesMax: answerBytesMax,
		PollsMax: s.Config.Shard.PollsMax, GrabEventsMax: shard.GrabEventsMax, GrabsInFlight: shard.GrabsInFlight, PopMax: shard.PopMax,
		PollsEvery: pace.Of(pollsEvery),
	}
}

// opened notes that a shard was opened, if so. It says of a term that is over what the shard
// understands.
func (s *Service) opened(m int, err error) error {
	switch {
	case err == nil:
		s.begin[m]()
	case errors.Is(err, ownership.ErrSuperseded):
		return fmt.Errorf("%w: %w", shard.ErrOvertaken, err)
	}
	return err
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
