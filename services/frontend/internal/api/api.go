// Package api is the public API on NATS: one micro service, yard-frontend, with
// an endpoint per verb.
//
// Owns: which subject leads to which verb, content types, headers, the form of
// answers and errors, and what PING, INFO and STATS tell.
//
// Never does: check or carry out a request; that is the gateway's. A handler runs
// in its subscription's goroutine and returns once the gateway has taken the
// request; the answer leaves from wherever the request ends.
//
// On failure: every error leaves as a *fault.Error in micro's error headers with
// a JSON body. A request without a reply subject is carried out and not answered,
// but a poll, which is nothing but its answer, is refused. A request whose reply
// subject is no inbox is dropped before anything else (inbox.go).
//
// Tenants share the goroutine of a verb and what waits for it (pendingMsgsMax). The goroutine is not
// shared out: a handler only decodes and queues, microseconds for all but the largest bodies, and
// one whose domain has its share under way is refused before it is decoded. A tenant that sends
// more than that is a matter for NATS' limits per account. Administrative verbs have goroutines
// of their own.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/audit"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/gateway"
)

const (
	// ServiceName is what micro's PING and INFO tell, and the queue group.
	ServiceName = "yard-frontend"
	// Version is of the API.
	Version = "1.0.0"

	// pendingMsgsMax and pendingBytesMax bound what waits for an endpoint's
	// goroutine; beyond, the client library drops requests, and clients time out.
	// Admission refuses long before that unless this process is starved.
	pendingMsgsMax  = 64 << 10
	pendingBytesMax = 64 << 20

	// quietFor is how long no request may have come for a drained subscription to
	// count as empty; quietWithin bounds the wait for it.
	quietFor    = 50 * time.Millisecond
	quietWithin = 2 * time.Second
)

// Deps is what the API needs.
type Deps struct {
	NATS    *nats.Conn
	Gateway *gateway.Gateway
	// Audit records what operators do; the caller runs it.
	Audit *audit.Log
	// Replies says which reply subjects are answered; nil is the default.
	Replies *natsrpc.Replies
	// RequestTimeout is the deadline of a request that brings none.
	RequestTimeout time.Duration
	// Clock dates requests.
	Clock *clock.Clock
	// Node names this process in INFO.
	Node    string
	Log     *slog.Logger
	Metrics *telemetry.Metrics
}

// API serves. It is a part for lifecycle.Group.
type API struct {
	Deps
	ready chan struct{}
	last  atomic.Int64 // when the last request came, Unix ns
}

// New makes the API; Run serves it.
func New(d Deps) *API {
	return &API{Deps: d, ready: make(chan struct{})}
}

// Ready is closed when requests are taken.
func (a *API) Ready() <-chan struct{} { return a.ready }

// Run serves until ctx ends. Then it takes no more requests and returns when
// those that had arrived are in the gateway's hands.
func (a *API) Run(ctx context.Context) error {
	all := slices.Concat(a.taskEndpoints(), a.endpoints(), a.scheduleEndpoints(), a.adminEndpoints())
	service, err := micro.AddService(a.NATS, micro.Config{
		Name: ServiceName, Version: Version, QueueGroup: ServiceName,
		Description:  "The public API of Yardmaster, a durable task engine.",
		Metadata:     map[string]string{"node": a.Node},
		StatsHandler: statsOf(all),
	})
	if err != nil {
		return fmt.Errorf("serve the API: %w", err)
	}
	for _, e := range all {
		if err := service.AddEndpoint(e.name(), e.handler,
			micro.WithEndpointSubject(e.subject), micro.WithEndpointMetadata(e.metadata()),
			micro.WithEndpointPendingLimits(pendingMsgsMax, pendingBytesMax),
		); err != nil {
			return errors.Join(fmt.Errorf("serve %s: %w", e.subject, err), service.Stop())
		}
	}
	planned, err := a.answerPlanned()
	defer func() {
		for _, sub := range planned {
			_ = sub.Unsubscribe() // the connection may be closed, and then no one is answered
		}
	}()
	if err != nil {
		return errors.Join(err, service.Stop())
	}
	if err := a.NATS.Flush(); err != nil && ctx.Err() == nil {
		return errors.Join(fmt.Errorf("serve the API: %w", err), service.Stop())
	}
	close(a.ready)
	<-ctx.Done()
	if err := service.Stop(); err != nil {
		return fmt.Errorf("stop the API: %w", err)
	}
	a.awaitQuiet()
	return nil
}

// answerPlanned answers UNIMPLEMENTED to the verbs of later versions. Without it they would find no
// responders, as if no frontend ran, and their client would try forever.
func (a *API) answerPlanned() (all []*nats.Subscription, err error) {
	unknown := newTally(a.Metrics, "unknown")
	for _, verb := range topology.APIPlanned() {
		sub, err := a.NATS.QueueSubscribe(topology.APIAny(verb), ServiceName, func(m *nats.Msg) {
			if m.Reply == "" || !a.Replies.Asker(topology.DomainOf(m.Subject), m.Reply) {
				return
			}
			e := fault.New(fault.Unimplemented, "this version of the engine (API %s) does not know %s", Version, topology.VerbOf(m.Subject))
			unknown.requests.Add(1)
			(&reply{api: a, tally: unknown, to: m.Reply}).refuse(e)
		})
		if err != nil {
			return all, fmt.Errorf("serve %s: %w", verb, err)
		}
		all = append(all, sub)
	}
	return all, nil
}

// awaitQuiet waits until requests that were on their way have been handled. Micro
// drains its subscriptions without telling when that is done.
func (a *API) awaitQuiet() {
	if a.NATS.FlushTimeout(quietWithin) != nil {
		return // no connection, no requests
	}
	began := time.Now()
	tick := time.NewTicker(quietFor / 5)
	defer tick.Stop()
	for now := range tick.C {
		last := time.Unix(0, a.last.Load())
		if now.Sub(began) > quietWithin || now.Sub(began) > quietFor && now.Sub(last) > quietFor {
			return
		}
	}
}
