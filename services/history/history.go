// Package history owns the life of a task: it reads the log of its partitions in
// order, applies it to a pure state machine and carries out what follows.
//
// Owns: the parts of the service and how they fit. Never does: import another
// service; it knows their contracts. On failure: a partition whose owner fails
// is taken over again, here or on another node; the log decides (I3).
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/api"
	"github.com/yardmaster-io/yardmaster/services/history/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/events"
	"github.com/yardmaster-io/yardmaster/services/history/internal/gauges"
	"github.com/yardmaster-io/yardmaster/services/history/internal/hearing"
	"github.com/yardmaster-io/yardmaster/services/history/internal/letterlimit"
	"github.com/yardmaster-io/yardmaster/services/history/internal/natshistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/queries"
	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

// Deps is what the service works with. All fields but Replies, Clock and Tracing are required. Tasks that are not in memory
// are read over connections of Connect, one for each partition, so that no such read holds up an owner.
type Deps struct {
	process.Env
	Config Config
}

// Service is the history service of one process.
type Service struct {
	Deps
	js        jetstream.JetStream
	metrics   *partition.Metrics
	ready     chan struct{}
	share     atomic.Pointer[ownership.Share]
	rooms     rooms
	tasklists tasklists
	workers   *hearing.Workers
	gauges    *gauges.Gauges
	// begun is closed for each partition when its owner has taken over here once, or has failed to; begin closes it.
	begun []chan struct{}
	begin []func()
}

// New makes the service.
func New(d Deps) (*Service, error) {
	if d.NATS == nil || d.Connect == nil || d.Log == nil || d.Node == "" || d.Partitioning.History < 1 || d.Partitioning.Matching < 1 {
		return nil, errors.New("history: NATS, Connect, Log, Node and Partitioning are required")
	}
	js, err := jetstream.New(d.NATS)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	s := &Service{
		Deps: d, js: js, metrics: partition.NewMetrics(d.Metrics), ready: make(chan struct{}), workers: hearing.New(),
	}
	for range d.Partitioning.History {
		begun := make(chan struct{})
		s.begun, s.begin = append(s.begun, begun), append(s.begin, sync.OnceFunc(func() { close(begun) }))
	}
	return s, nil
}

// Ready is closed when the service serves its first share of the partitions: they are taken over, so what a matching
// shard that starts next says to them is answered at once, and not only when it says it again, a second later.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// Owned is the partitions that this process serves.
func (s *Service) Owned() ownership.Report { return s.share.Load().Report() }

// Saved is how old the snapshot of a partition is.
func (s *Service) Saved(partition int) *process.Snapshot {
	r, ok := s.gauges.Saved(partition)
	if !ok {
		return nil
	}
	return &process.Snapshot{AtMs: r.SavedAtMS, LogBytes: r.UnsavedBytes}
}

// Check is a condition of being ready besides Ready: an error where this node may
// serve no partition.
func (s *Service) Check() error { return s.share.Load().Check() }

// Warn is an error where partitions have no owner, or take no further tasks since the storage is full.
func (s *Service) Warn() error {
	unowned, full := s.share.Load().Warn(), s.rooms.warn()
	if unowned != nil && full != nil {
		return fmt.Errorf("%w; %w", unowned, full)
	}
	return cmp.Or(unowned, full)
}

// Run serves the partitions that this node owns until ctx ends, then drains.
func (s *Service) Run(ctx context.Context) error {
	config, err := provision.Bucket(ctx, s.js, topology.ConfigBucket, s.Log)
	if err != nil {
		return fmt.Errorf("open the config bucket: %w", err)
	}
	secret, err := provision.TokenSecret(ctx, config)
	if err != nil {
		return err
	}
	tokens := ids.NewTokens(secret)
	checkpoints, err := provision.Bucket(ctx, s.js, topology.CheckpointsBucket, s.Log)
	if err != nil {
		return fmt.Errorf("open the checkpoints bucket: %w", err)
	}
	members, err := provision.Bucket(ctx, s.js, topology.MembersBucket, s.Log)
	if err != nil {
		return fmt.Errorf("open the members bucket: %w", err)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	loading := context.AfterFunc(ctx, stop) // of a cluster that does not answer
	domains, err := catalog.WatchEvery(watching, config, pace.Of(catalog.CompareEvery), s.tasklists.changed)
	loading()
	if err != nil {
		return fmt.Errorf("watch the domains: %w", err)
	}
	s.tasklists.follow(domains)
	s.gauges = gauges.New(s.Deps.Metrics, domains.Weight, s.Config.TopDomains)
	owner := ownership.New(ownership.Config{
		Service: "history", Node: s.Node, Count: s.Partitioning.History, KV: members, Log: s.Log,
		Version: domains.Version, Metrics: s.Deps.Metrics,
		Serve: func(ctx context.Context, p int) error { return s.serve(ctx, p, domains, tokens, checkpoints) },
	})
	s.share.Store(owner)
	go owner.AwaitFirst(watching, func(p int) <-chan struct{} { return s.begun[p] }, s.ready)
	closeEar, err := s.listen(watching, domains)
	if err != nil {
		return fmt.Errorf("listen for signs of life: %w", err)
	}
	defer closeEar()
	return owner.Run(ctx)
}

// retentionDefault is how long finished tasks of a domain that says nothing are kept.
const retentionDefault = 7 * 24 * time.Hour

// retention is for how long a finished task is kept: a completed one by its type, if that says so. A task that was redriven is kept like its earlier end, which
// would come to light otherwise. Tasks with one retention share messages of the archive, so the times of types are rounded up to few: a domain cannot make many.
func retention(all *catalog.Catalog) func(t *taskstate.Task) time.Duration {
	return func(t *taskstate.Task) time.Duration {
		ms := all.Domain(t.Domain).GetRetentionMs()
		if own := catalog.Types.Of(all, t.Domain, t.Type).GetCompletedRetentionMs(); own > 0 && t.State == taskstate.Completed && t.Redriven().Count == 0 {
			ms = topology.RetentionMin.Milliseconds()
			for ms < own {
				ms *= 2
			}
		}
		if ms == 0 {
			return retentionDefault
		}
		return max(time.Duration(ms)*time.Millisecond, topology.RetentionMin) // earlier versions took less
	}
}

// serve owns one partition until ctx ends: first the wire, then the owner, then,
// once it has taken over, its calls.
func (s *Service) serve(ctx context.Context, p int, domains *catalog.Catalog, tokens *ids.Tokens, checkpoints jetstream.KeyValue) error {
	defer s.begin[p]()
	wire, closeWire, err := natshistory.NewWire(s.NATS, s.Replies, s.Log)
	if err != nil {
		return fmt.Errorf("listen for bounced answers: %w", err)
	}
	defer closeWire()
	nc := natshistory.Config{NATS: s.NATS, JetStream: s.js, Partition: p, LogVersion: domains.WriteVersion, Log: s.Log}
	reader, closeReader, err := s.openReader(ctx, p, domains.Weight)
	if err != nil {
		return fmt.Errorf("open the reader of finished tasks: %w", err)
	}
	defer closeReader()
	defer s.gauges.Leave(p)
	room, log := s.room(p), natshistory.NewLog(nc)
	owner := partition.New(partition.Deps{
		Partition: p, Partitioning: s.Partitioning, Node: s.Node, Config: s.Config.Partition,
		Log: log, Capped: partition.Capped{Caps: s.tasklists.caps, Bounded: domains.Bounded, Scan: log.Scan}, Archive: natshistory.NewArchive(nc, retention(domains)), Reader: reader,
		TimerStore: natshistory.NewTimerStore(nc), Timer: natshistory.Timer{Config: nc},
		Checkpoints: natshistory.Checkpoints{Config: nc, KV: checkpoints}, Snapshots: natshistory.NewSnapshots(nc), Wire: wire, Quarantine: nc.Quarantine,
		Settings: partition.Settings{
			Paused:             func(domain string) func(tasklist, typ, group string) bool { return s.paused(domains, domain) },
			TasklistPartitions: s.tasklists.partitionsOf, Type: func(domain, name string) *yardv1.TaskType { return catalog.Types.Of(domains, domain, name) },
			Events: events.Config{Publish: s.NATS.Publish, Domain: func(name string) events.Settings {
				d := domains.Domain(name)
				return events.Settings{On: d.GetEvents(), LateMS: d.GetLateAfterMs(), StuckMS: d.GetStuckAfterMs()}
			}, TypeStuckMS: func(domain, typ string) int64 { return catalog.Types.Of(domains, domain, typ).GetStuckAfterMs() }},
		},
		Weights:     partition.Weights{Weight: domains.Weight, FullWeight: domains.FullWeight},
		Report:      func(r *gauges.Report) { s.gauges.Report(p, r) },
		StorageFull: room.Full, LogVersion: domains.WriteVersion, Workers: s.workers, Tokens: tokens, Clock: s.Clock, Logger: s.Log, Tracing: s.Tracing, Metrics: s.metrics,
	})
	var parts lifecycle.Group
	parts.Add("storage", room)
	parts.Add("owner", owner)
	parts.Add("letterlimits", &letterlimit.Deleter{
		Partition: p, Partitions: s.Partitioning.History, Every: s.Config.LetterLimitsEvery, Domains: func() []*yardv1.Domain { return catalog.Domains.All(domains, "") }, Store: natshistory.NewDeadLetters(reader),
		Now: s.Clock.Now, Log: s.Log, TooMany: s.Deps.Metrics.Counter(signals.DeadLettersDeleted, signals.ReasonNumber), TooOld: s.Deps.Metrics.Counter(signals.DeadLettersDeleted, signals.ReasonAge),
	})
	store := natshistory.Batches{Config: nc}
	parts.Add("batches", batches.New(batches.Deps{
		Partition: p, Partitions: s.Partitioning.History, Store: store, Hints: store.Hints, Now: s.Clock.Now, Log: s.Log,
	}))
	questions := queries.Of(owner)
	questions.Domains = func() map[string]gauges.Work { return s.gauges.Domains(p) }
	parts.Add("calls", lifecycle.Func(func(ctx context.Context) error { return api.Serve(ctx, s.NATS, questions, s.Replies, s.Log) }))
	parts.Add("begun", lifecycle.Func(func(ctx context.Context) error {
		s.begin[p]()
		<-ctx.Done()
		return nil
	}))
	err = parts.Run(ctx)
	if errors.Is(err, partition.ErrUnreadable) {
		return fmt.Errorf("%w: %w", ownership.ErrGiveUp, err)
	}
	return err
}

// readerTimeout bounds how long the answers under way are waited for.
const readerTimeout = 5 * time.Second

// openReader makes what finds finished tasks. Each has a connection: the server serves the
// direct gets of one connection one after the other, and cuts off one that has much on the way.
func (s *Service) openReader(ctx context.Context, p int, weight func(domain string) int) (_ *natshistory.Reader, closeReader func(), err error) {
	nc, err := s.Connect(ctx, "reads")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			nc.Close()
		}
	}()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, nil, err
	}
	r, err := natshistory.NewReader(natshistory.Config{NATS: nc, JetStream: js, Partition: p, Weight: weight, Log: s.Log})
	if err != nil {
		return nil, nil, err
	}
	return r, func() {
		defer nc.Close()
		ctx, cancel := context.WithTimeout(context.Background(), readerTimeout)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			s.Log.Debug("pending reads of finished tasks were cancelled", "error", err)
		}
	}, nil
}

// listen hears the signs of life of workers until ctx ends, for all partitions that are owned here. It has a connection of its own, so too many
// of them hold up nothing else.
func (s *Service) listen(ctx context.Context, domains *catalog.Catalog) (closeEar func(), err error) {
	nc, err := s.Connect(ctx, "signs of life")
	if err != nil {
		return nil, err
	}
	ear, err := natshistory.NewEar(s.NATS, nc, s.workers, func(domain string) bool { return domains.Domain(domain) != nil })
	if err != nil {
		nc.Close()
		return nil, err
	}
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	running.Go(func() { ear.Run(ctx) })
	return func() {
		stop()
		running.Wait()
		nc.Close()
	}, nil
}

// paused returns which tasks of a domain are paused now; nil = none is.
func (s *Service) paused(all *catalog.Catalog, domain string) func(tasklist, typ, group string) bool {
	now, p := s.Clock.Now().UnixMilli(), &catalog.Pauses
	if !catalog.Paused(p.Domains.Of(all, "", domain), now) && p.Tasklists.Count(all, domain)+p.Types.Count(all, domain)+p.Groups.Count(all, domain) == 0 {
		return nil
	}
	return func(tasklist, typ, group string) bool {
		_, _, p := catalog.Pauses.OfTask(all, domain, tasklist, typ, group, now)
		return p != nil
	}
}
