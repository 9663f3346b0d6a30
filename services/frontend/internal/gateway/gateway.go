// Package gateway carries out the requests of the public API, one file per verb.
//
// Owns: what happens to a request between its decoding and its answer: group commit of submits and outcomes, the choice of a partition and the next one
// where an append failed, the repetition of what has an unknown outcome, the forwarding of polls, and the questions to the owners of partitions.
//
// Never does: decode or encode a body, or talk to NATS itself (ports.go). It holds no state of a task: a frontend may die at any time, and what it has
// answered is in the log. The polls that it remembers serve quickness only.
//
// On failure: each request is answered exactly once, by its deadline, with a *fault.Error that says what is known: UNAVAILABLE where nothing was stored,
// UNKNOWN with a token if that is not known.
//
// Nothing here blocks the caller: Submit, Poll, Complete, Fail, Heartbeat and Cancel return as soon as the request is queued, without a goroutine of its
// own. Queries and administration run in one goroutine each, bounded.
//
// Everything that tenants share is bounded for each of them (pools.go, I14): requests under way and their bytes, queries, waits, polls on their way, and
// submits and events that wait for a partition. The rest needs no bound of its own. Group commits of cancels are a domain's own, and exist while any of
// its requests is under way; a flight of events likewise. A query asks each owner once at a time, so its goroutines are as many as there are owners.
// Domains whose submits go to one partition take turns (core/filing), and so do those whose events do. Not shared out is the load that owners carry: it is
// theirs to share out.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/caps"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/placement"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/polls"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/quotas"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// Call is what is known of a request besides its body.
type Call struct {
	// Domain is the subject's, not checked yet; topology.ReservedDomain for administrative requests.
	Domain string
	// Tasklist is that of the subject, if it names one.
	Tasklist string
	// JSON tells how the request was written, and so how it is answered.
	JSON bool
	// Reply is the asker's inbox: a poll is answered there by matching itself.
	Reply string
	// Trace is the trace context of the request (telemetry.ParseTraceparent); nil = none.
	Trace []byte
	// Received is when the request came, by this node's clock: for durations.
	Received time.Time
	// Now is the same by the server's clock: what has to do with the log is checked and dated by it.
	Now time.Time
	// Deadline is when it must have been answered.
	Deadline time.Time
}

// now is the server's clock.
func (c *Call) now() time.Time { return c.Now.Add(time.Since(c.Received)) }

func (c *Call) form() validate.Form { return validate.Form{JSON: c.JSON} }

// Answer takes what a request is answered with: a response or an error. It is
// called once. Only a poll differs: nil and nil say that matching answers it, and an
// error may still follow where it turns out that there was no subscriber, or an empty response
// where the owner that has it was replaced.
type Answer func(resp codec.Message, err error)

// Deps is what a gateway needs. Log, Tracing and Metrics may be nil.
type Deps struct {
	Config       Config
	Partitioning topology.Partitioning
	Tokens       *ids.Tokens
	History      Log
	Letters      Letters
	Batches      Batches
	Bus          Bus
	Owners       Owners
	// Catalog is what this frontend knows of the settings, which follows the stored ones within moments.
	Catalog  *catalog.Catalog
	Settings catalog.Bucket
	// LogVersion is the log version to write.
	LogVersion func() uint32
	Log        *slog.Logger
	// Clock dates spans as the log dates what it has.
	Clock   *clock.Clock
	Tracing *telemetry.Tracing
	Metrics *telemetry.Metrics
}

// Gateway carries out requests. It is safe for concurrent use.
type Gateway struct {
	Deps
	metrics   metrics
	placement *placement.Placement
	appender  *appender
	outcomes  *outcomes
	polls     *polls.Polls
	// epochs are the newest open ones by matching shard; the polls guard them.
	epochs []uint64
	spread *spread
	// drainVoice is Run's.
	drainVoice drainVoice
	// batchWaits are the batches that requests wait for.
	batchWaits  batchWaits
	openBatches openBatches

	// base ends when draining took too long: what waits then gives up.
	base   context.Context
	giveUp context.CancelFunc

	open  atomic.Int64 // requests admitted and not answered
	pools pools
	// queues are those of tasklists with a cap.
	queues *queueCaps
	// Quotas are those of the domains; the caller runs ShareUse.
	*quotas.Quotas
}

// New makes a gateway. Nothing happens before the first request; Run must run
// while requests come in.
func New(d Deps) (*Gateway, error) {
	if d.History == nil || d.Letters == nil || d.Batches == nil || d.Bus == nil || d.Catalog == nil || d.Settings == nil || d.Tokens == nil || d.LogVersion == nil || d.Owners.missing() {
		return nil, errors.New("gateway: a port or the tokens are missing")
	}
	if d.Partitioning.History < 1 || d.Partitioning.Matching < 1 {
		return nil, fmt.Errorf("gateway: %+v is no partitioning", d.Partitioning)
	}
	if most := d.History.MessageBytesMax(); most < messageBytesFloor {
		return nil, fmt.Errorf("gateway: the log takes messages of %d bytes, at least %d are needed: raise the server's max_payload", most, messageBytesFloor)
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{Deps: d, Quotas: quotas.New(d.Catalog, d.Bus.PublishUse, d.Metrics, d.Log), metrics: newMetrics(d.Metrics), pools: newPools(d.Config), queues: &queueCaps{book: caps.NewBook()}}
	g.base, g.giveUp = context.WithCancel(context.Background())
	g.placement = placement.New(d.Partitioning.History, d.Metrics, d.Log)
	g.appender = newAppender(g)
	g.outcomes = newOutcomes(g)
	g.epochs = make([]uint64, d.Partitioning.Matching)
	g.polls = polls.New(polls.Config{
		Epochs: g.epochs, Catalog: d.Catalog, Tokens: d.Tokens, DirectStarts: d.Config.DirectStarts, Bus: d.Bus, Metrics: g.metrics.polls, Log: d.Log,
		AnswerBytes: d.History.MessageBytesMax() / 2, // as JSON it grows
		Left: func(domain string, places int) {
			g.pools.polls.Give(domain, places)
			g.Quotas.Close(domain)
		},
		HandBack: handBack(g),
	})
	g.spread = newSpread(d.Config)
	return g, nil
}

// Run does what is due by time. When ctx ends it waits until every admitted
// request is answered, at most for Config.DrainTimeout; the caller has stopped
// requests from coming in before.
func (g *Gateway) Run(ctx context.Context) error {
	defer g.giveUp()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for draining := false; !draining; {
		select {
		case now := <-tick.C:
			g.polls.Tick(now)
			g.spread.tick(now)
			g.appender.tick(now)
			g.tellDrained(now)
		case <-ctx.Done():
			draining = true
		}
	}
	g.polls.Stop()
	if g.awaitIdle(tick.C, g.Config.DrainTimeout) {
		return nil
	}
	g.giveUp() // what is still open is answered at once with what is known
	if g.awaitIdle(tick.C, giveUpGrace) {
		return nil
	}
	return fmt.Errorf("gateway: %d requests were not answered", g.open.Load())
}

// awaitIdle waits until no request is open, and tells whether that came in time.
func (g *Gateway) awaitIdle(tick <-chan time.Time, within time.Duration) bool {
	deadline := time.Now().Add(within)
	for g.open.Load() > 0 {
		if now := <-tick; now.After(deadline) {
			return false
		}
	}
	return true
}

// domain checks the domain of a call and whether it exists.
func (g *Gateway) domain(c *Call) error {
	if g.Catalog.Domain(c.Domain) != nil { // what exists has been checked
		return nil
	}
	if err := validate.DomainToken(c.Domain); err != nil {
		return err
	}
	return noDomain("", c.Domain)
}

// rejects answers a request of a domain that does not exist, or one that is bad.
func (g *Gateway) rejects(c *Call, bad error, answer Answer) bool {
	err := cmp.Or(g.domain(c), bad)
	if err != nil {
		answer(nil, err)
	}
	return err != nil
}

// asks carries out a request of a domain in a goroutine of its own, unless it is rejected.
func (g *Gateway) asks(c Call, bad error, answer Answer, do work) {
	if !g.rejects(&c, bad, answer) {
		g.query(c.Domain, c.Deadline, answer, do)
	}
}

// noDomain refuses what is asked of a domain that does not exist, and says what to do about it.
func noDomain(path, name string) error {
	return fault.At(fault.NotFound, path, "there is no domain %q: create it with %s, or `yard domain put %s`", name, topology.Admin("domains.put"), name)
}
