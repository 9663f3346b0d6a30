// Package frontend is the public API of Yardmaster: it checks requests, brings
// them into the history log, and answers with what the log or its owners say.
//
// Owns: the parts of the service and how they fit. It keeps nothing: any number
// of frontends serve the same subjects as one queue group.
//
// Never does: import another service; it knows their contracts.
//
// On failure: a frontend that dies leaves its callers without an answer; what
// they repeat is safe to repeat (README.md, On failure).
package frontend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/provision"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/api"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/audit"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/gateway"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/natsgate"
)

// Deps is what the service works with. NATS and Partitioning are required; a nil
// Tracing is off, nil Metrics are not read by anyone.
type Deps struct {
	process.Env
	Config Config
}

// Service is the frontend of one process.
type Service struct {
	Deps
	js    jetstream.JetStream
	ready chan struct{}
	// beacon and gate are set by Run.
	beacon atomic.Pointer[ownership.Beacon]
	gate   atomic.Pointer[gateway.Gateway]
}

// New makes the service. The streams and buckets exist by the time of Run.
func New(d Deps) (*Service, error) {
	if d.NATS == nil || d.Partitioning.History < 1 || d.Partitioning.Matching < 1 {
		return nil, errors.New("frontend: NATS and Partitioning are required")
	}
	if problems := d.Config.Validate(); len(problems) > 0 {
		return nil, fmt.Errorf("frontend: %s", problems[0])
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	js, err := jetstream.New(d.NATS)
	if err != nil {
		return nil, fmt.Errorf("frontend: %w", err)
	}
	return &Service{Deps: d, js: js, ready: make(chan struct{})}, nil
}

// Ready is closed when requests are served.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// Check is a condition of being ready besides Ready: an error where JetStream is not available here.
func (s *Service) Check() error { return s.beacon.Load().Check() }

// Warn is an error if submits are refused since the log's storage is full, which another frontend would refuse too, or if
// appends to some partitions are slow.
func (s *Service) Warn() error {
	if gate := s.gate.Load(); gate != nil {
		return gate.Intake.Warn()
	}
	return nil
}

// stopGrace is what a part gets to stop beyond the time it takes by its config.
const stopGrace = 5 * time.Second

// Run serves until ctx ends, then takes no more requests, finishes those under
// way, and returns.
func (s *Service) Run(ctx context.Context) error {
	config, err := provision.Bucket(ctx, s.js, topology.ConfigBucket, s.Log)
	if err != nil {
		return fmt.Errorf("open the config bucket: %w", err)
	}
	secret, err := provision.TokenSecret(ctx, config)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx)) // requests that drain still need it
	defer stop()
	loading := context.AfterFunc(ctx, stop) // of a cluster that does not answer
	settings, err := catalog.WatchEvery(watching, config, pace.Of(catalog.CompareEvery), nil)
	loading()
	if err != nil {
		return fmt.Errorf("watch domains and types: %w", err)
	}
	inbox := natsgate.NewInbox(s.NATS)
	reader, err := natsgate.NewReader(s.js)
	if err != nil {
		return err
	}
	defer reader.Close()
	gate, err := gateway.New(gateway.Deps{
		Config: s.Config.Gateway, Partitioning: s.Partitioning, Tokens: ids.NewTokens(secret),
		History: natsgate.NewLog(s.NATS, s.js), DeadLetters: natsgate.Letters{Reader: reader}, Batches: natsgate.Batches{Reader: reader}, Schedules: natsgate.Schedules{Reader: reader}, Bus: inbox,
		Owners:  natsgate.Owners(s.NATS),
		Catalog: settings, Settings: config, LogVersion: settings.WriteVersion, Clock: s.Clock,
		Log: s.Log, Tracing: s.Tracing, Metrics: s.Metrics,
	})
	if err != nil {
		return err
	}
	s.gate.Store(gate)
	inbox.Listen(gate.Outcomes, gate.Polls, gate.Hints())
	recorder := audit.New(natsgate.NewAudit(s.NATS, reader), gate.Run, s.Metrics, s.Log)
	public := api.New(api.Deps{
		NATS: s.NATS, Gateway: gate, Audit: recorder, Replies: s.Replies, RequestTimeout: s.Config.Gateway.RequestTimeout,
		Clock: s.Clock, Node: s.Node, Log: s.Log, Metrics: s.Metrics,
	})

	members, err := provision.Bucket(ctx, s.js, topology.MembersBucket, s.Log)
	if err != nil {
		return fmt.Errorf("open the members bucket: %w", err)
	}
	beacon := &ownership.Beacon{Service: "frontend", Node: s.Node, KV: members, Log: s.Log}
	s.beacon.Store(beacon)

	checkpoints, err := provision.Bucket(ctx, s.js, topology.CheckpointsBucket, s.Log)
	if err != nil {
		return fmt.Errorf("open the checkpoints bucket: %w", err)
	}
	parts := lifecycle.Group{DrainTimeout: s.Config.Gateway.DrainTimeout + stopGrace}
	parts.Add("beacon", beacon)                                     // is among the members
	parts.Add("inbox", inbox)                                       // hears verdicts
	parts.Add("gateway", lifecycle.Func(gate.Serve))                // carries requests out
	parts.Add("epochs", s.epochs(checkpoints, gate))                // knows who takes polls
	parts.Add("scales", lifecycle.Func(gate.Scaling.Scale))         // sets numbers of partitions
	parts.Add("quotas", lifecycle.Func(gate.Quotas.ShareUse))       // tells other frontends of domains with a quota
	parts.Add("drains", lifecycle.Func(gate.Operator.ForgetDrains)) // of workers that are gone
	parts.Add("audit", recorder)                                    // keeps what operators do
	parts.Add("api", public)                                        // lets them in
	parts.Add("ready", s.opened())                                  // says so
	return parts.Run(ctx)
}

// epochs tells the gateway of the owners of the matching shards.
func (s *Service) epochs(kv jetstream.KeyValue, gate *gateway.Gateway) *ownership.Epochs {
	keys := make([]string, s.Partitioning.Matching)
	for m := range keys {
		keys[m] = topology.MatchingEpoch(m)
	}
	return &ownership.Epochs{KV: kv, Keys: keys, Log: s.Log, Rose: func(m int, now ownership.Epoch) { gate.Polls.Opened(m, now.Open) }}
}

// opened closes Ready: as the last part it starts when all others are there.
func (s *Service) opened() lifecycle.Func {
	return func(ctx context.Context) error {
		close(s.ready)
		<-ctx.Done()
		return nil
	}
}
