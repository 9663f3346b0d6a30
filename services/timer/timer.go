// Package timer keeps the tasks that wait and fires each when it is due.
//
// Owns: the parts of the service and how they fit. Never does: import another
// service; it knows their contracts. On failure: a partition whose owner fails
// is loaded again, here or on another node; the cursor in the log tells what was
// fired (I10).
package timer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/api"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/natstimer"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/schedules"
	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/storage"
)

// Deps is what the service works with. NATS, Log, Node and Partitioning are required; Clock and Metrics may be nil.
type Deps struct {
	process.Env
	Config Config
}

// Service is the timer service of one process.
type Service struct {
	Deps
	js    jetstream.JetStream
	ready chan struct{}
	share atomic.Pointer[ownership.Share]
	// next is when the next task of each partition is due, Unix ms; 0 = none waits here.
	next []atomic.Int64
	late lateDomains
}

// New makes the service. The streams exist by the time it runs.
func New(d Deps) (*Service, error) {
	if d.NATS == nil || d.Log == nil || d.Node == "" || d.Partitioning.History < 1 {
		return nil, errors.New("timer: NATS, Log, Node and Partitioning are required")
	}
	js, err := jetstream.New(d.NATS)
	if err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	s := &Service{Deps: d, js: js, ready: make(chan struct{}), next: make([]atomic.Int64, d.Partitioning.History)}
	s.reportNext()
	return s, nil
}

// Ready is closed when the service serves its first share of the partitions.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// Owned is the partitions that this process serves.
func (s *Service) Owned() ownership.Report { return s.share.Load().Report() }

// Check is a condition of being ready besides Ready: an error where this node may
// serve no partition.
func (s *Service) Check() error { return s.share.Load().Check() }

// Warn is an error where partitions have no owner.
func (s *Service) Warn() error { return s.share.Load().Warn() }

// Run serves the partitions that this node owns until ctx ends, then drains.
func (s *Service) Run(ctx context.Context) error {
	members, err := provision.Bucket(ctx, s.js, topology.MembersBucket, s.Log)
	if err != nil {
		return fmt.Errorf("open the members bucket: %w", err)
	}
	config, err := provision.Bucket(ctx, s.js, topology.ConfigBucket, s.Log)
	if err != nil {
		return fmt.Errorf("open the config bucket: %w", err)
	}
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	loading := context.AfterFunc(ctx, end) // of a cluster that does not answer
	cluster, err := catalog.WatchEvery(watching, config, pace.Of(catalog.CompareEvery), nil)
	loading()
	if err != nil {
		return fmt.Errorf("watch the log version: %w", err)
	}
	owner := ownership.New(ownership.Config{
		Service: "timer", Node: s.Node, Count: s.Partitioning.History, KV: members, Log: s.Log,
		Version: cluster.Version, Metrics: s.Metrics,
		Serve: func(ctx context.Context, p int) error { return s.serve(ctx, p, cluster) },
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

// serve owns one partition until ctx ends. A record of a log version that this
// program does not know makes it give the partition up (I13).
func (s *Service) serve(ctx context.Context, p int, cluster *catalog.Catalog) error {
	err := s.own(ctx, p, cluster)
	var unknown *logversion.UnknownError
	if errors.As(err, &unknown) {
		return fmt.Errorf("%w: %w", ownership.ErrGiveUp, err)
	}
	return err
}

// own opens the store and the log, loads what waits, and then fires and answers.
func (s *Service) own(ctx context.Context, p int, cluster *catalog.Catalog) error {
	log := s.Log.With("partition", p)
	store, err := natstimer.OpenStore(ctx, s.js, p, log)
	if err != nil {
		return err
	}
	history, err := natstimer.OpenLog(ctx, s.js, p, cluster.WriteVersion)
	if err != nil {
		return err
	}
	gauges, done := gauges(s.Metrics, p, &s.next[p])
	defer done()
	room := &storage.Watch{JetStream: s.js, Stream: topology.HistoryStream(p), Config: s.Config.Storage, Log: log}
	owner := firing.New(firing.Deps{
		Store: store, Pruner: store, Log: history, Config: s.Config.Firing, Gauges: gauges, Logger: log, Now: s.Clock.Now,
		Quarantine: counted(s.Metrics, p, store.SetApart), LogVersion: cluster.WriteVersion, StorageFull: room.Full, Weight: cluster.Weight,
	})
	if err := owner.Load(ctx); err != nil {
		return err
	}
	var parts lifecycle.Group
	parts.Add("storage", room)
	parts.Add("firing", owner)
	parts.Add("stored", lifecycle.Func(func(ctx context.Context) error { return s.reportStored(ctx, p, owner, cluster) }))
	parts.Add("late", lifecycle.Func(func(ctx context.Context) error { return s.watchLate(ctx, p, owner) }))
	parts.Add("schedules", s.schedules(p, cluster, room, log))
	parts.Add("calls", lifecycle.Func(func(ctx context.Context) error { return api.Serve(ctx, s.NATS, p, owner, s.Replies, log) }))
	return parts.Run(ctx)
}

// takes reports whether the task of a schedule may be submitted now. The runs wait otherwise, as if the engine was down.
func (s *Service) takes(cluster *catalog.Catalog, room *storage.Watch) func(*logv1.Record) bool {
	return func(t *logv1.Record) bool {
		_, _, drain := catalog.Drains.OfTask(cluster, t.Domain, t.Tasklist, t.Type, t.Group, s.Clock.Now().UnixMilli())
		return room.Full() == "" && cluster.Domain(t.Domain) != nil && drain == nil
	}
}

// schedules keeps those whose home is a partition.
func (s *Service) schedules(p int, cluster *catalog.Catalog, room *storage.Watch, log *slog.Logger) *schedules.Keeper {
	at := natstimer.Schedules{JetStream: s.js, NATS: s.NATS, Partition: p, LogVersion: cluster.WriteVersion, Log: log}
	return schedules.New(schedules.Deps{
		Partition: p, Store: at, History: at, LogVersion: cluster.WriteVersion, Takes: s.takes(cluster, room), Now: s.Clock.Now, Metrics: scheduleMetrics(s.Metrics, p),
		Tracing: s.Tracing, TraceRatio: cluster.TraceRatio, Log: log,
	})
}
