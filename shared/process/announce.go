package process

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Presence makes a service known to NATS: as the micro service yard-<name>, whose
// PING tells that it lives and whose endpoint topology.Health(name) answers with
// its readiness, as JSON, once per process. It is a part for lifecycle.Group.
type Presence struct {
	// Service is the service's name, such as "history".
	Service string
	// Node is the process's name among the members.
	Node string
	// NATS carries it.
	NATS *nats.Conn
	// Replies says who is answered; nil is the default.
	Replies *natsrpc.Replies
	// Health is asked at each request.
	Health *telemetry.Health
	// Owner tells which partitions the service serves; nil = it has none.
	Owner Owner
	// Clock is the process's; nil = the server is in it.
	Clock *clock.Clock
	// Log hears of answers that could not be sent.
	Log *slog.Logger
}

// Answer is the body of the health endpoint's answer.
type Answer struct {
	Service string `json:"service"`
	Node    string `json:"node"`
	// Version is that of the program.
	Version string `json:"version"`
	telemetry.Readiness
	// Partitions is how many partitions, or shards, the service has; 0 = none, or it is not known yet. Serves are those that this process serves.
	Partitions int      `json:"partitions,omitempty"`
	Serves     []Served `json:"serves,omitempty"`
	// Clock is absent where it is not known, or is the server's own.
	Clock *clockAnswer `json:"clock,omitempty"`
}

// Served is a partition that a process serves.
type Served struct {
	Partition int `json:"partition"`
	// SinceMs is since when, Unix ms, by the server's clock.
	SinceMs int64 `json:"since_ms"`
	// Snapshot is absent where the service makes none, or it is not known yet.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
}

// Snapshot is how old the saved state of a partition is.
type Snapshot struct {
	// AtMs is when this process saved it last, Unix ms, by the server's clock; 0 = it has not, and another one did before.
	AtMs int64 `json:"at_ms,omitempty"`
	// LogBytes is about how much of the log follows the last one.
	LogBytes int64 `json:"log_bytes"`
}

// Owner is a service that has partitions, of which each process serves some.
type Owner interface{ Owned() ownership.Report }

// Saver is an owner that saves snapshots of its partitions.
type Saver interface {
	// Saved is how old that of a partition is; nil = it is not known.
	Saved(partition int) *Snapshot
}

// clockAnswer tells how far the node's clock is ahead of the server's.
type clockAnswer struct {
	SkewMs float64 `json:"skew_ms"`
	// WithinMs is by how much that may be wrong, either way.
	WithinMs float64 `json:"within_ms"`
}

// Run serves until ctx ends.
func (p *Presence) Run(ctx context.Context) error {
	service, err := micro.AddService(p.NATS, micro.Config{
		Name: "yard-" + p.Service, Version: Version, Description: "Yardmaster " + p.Service,
		Metadata: map[string]string{"node": p.Node, "revision": revision()},
		// Every process answers, since each has its own health.
		QueueGroupDisabled: true,
	})
	if err != nil {
		return fmt.Errorf("announce on NATS: %w", err)
	}
	if err := service.AddEndpoint("health", micro.HandlerFunc(p.answer), micro.WithEndpointSubject(topology.Health(p.Service))); err != nil {
		return fmt.Errorf("announce on NATS: %w", err)
	}
	<-ctx.Done()
	if err := service.Stop(); err != nil && !p.NATS.IsClosed() {
		p.Log.Warn("could not unsubscribe from health requests", "error", err)
	}
	return nil
}

func (p *Presence) answer(req micro.Request) {
	if !p.Replies.Operator(req.Reply()) {
		return
	}
	a := Answer{Service: p.Service, Node: p.Node, Version: Version, Readiness: p.Health.Readiness()}
	if s, ok := p.Clock.Skew(); ok {
		a.Clock = &clockAnswer{milliseconds(s.Ahead), milliseconds(s.Within)}
	}
	if p.Owner != nil {
		owned := p.Owner.Owned()
		a.Partitions = owned.Count
		saver, saves := p.Owner.(Saver)
		for _, o := range owned.Served {
			served := Served{Partition: o.Partition, SinceMs: p.Clock.At(o.Since).UnixMilli()}
			if saves {
				served.Snapshot = saver.Saved(o.Partition)
			}
			a.Serves = append(a.Serves, served)
		}
	}
	body, err := json.Marshal(a)
	if err == nil {
		err = req.Respond(body)
	}
	if err != nil {
		p.Log.Warn("could not answer a health request", "error", err)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
