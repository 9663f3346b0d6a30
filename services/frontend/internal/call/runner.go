package call

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/admission"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

const (
	// adminMax bounds the administrative requests under way; three quarters of it are in use,
	// since they are one's.
	adminMax = 64
	// unknownDomains is the one account for the requests of all domains that do not exist:
	// each made-up name would else have a share of its own.
	unknownDomains = ""
	// giveUpGrace is how long requests have to answer when they must give up.
	giveUpGrace = 2 * time.Second
)

// Bounds are how many requests of a kind may be under way at once, and their bytes.
type Bounds struct{ Requests, Bytes, Queries, Waits int }

// Runner lets requests in and runs them. Each bound is shared out by domain, so that a domain that
// asks without end leaves the others room (I14); the administration has its own.
type Runner struct {
	catalog *catalog.Catalog
	log     *slog.Logger
	// base ends when draining took too long: what waits then gives up.
	base   context.Context
	giveUp context.CancelFunc
	open   atomic.Int64 // requests admitted and not answered
	// resting: the next request makes woken ready.
	resting atomic.Bool
	woken   chan struct{}

	requests, bytes, queries, waits, admin *admission.Room
}

// NewRunner makes a runner.
func NewRunner(b Bounds, c *catalog.Catalog, log *slog.Logger) *Runner {
	r := &Runner{
		catalog: c, log: log, woken: make(chan struct{}, 1), requests: admission.New(b.Requests), bytes: admission.New(b.Bytes),
		queries: admission.New(b.Queries), waits: admission.New(b.Waits), admin: admission.New(adminMax),
	}
	r.base, r.giveUp = context.WithCancel(context.Background())
	return r
}

// Base ends when this process stops and requests must give up.
func (r *Runner) Base() context.Context { return r.base }

// Drain waits until every admitted request is answered, at most for so long; then what is still open is answered at once with what is known.
func (r *Runner) Drain(tick <-chan time.Time, within time.Duration) error {
	defer r.giveUp()
	if r.awaitIdle(tick, within) {
		return nil
	}
	r.giveUp()
	if r.awaitIdle(tick, giveUpGrace) {
		return nil
	}
	return fmt.Errorf("gateway: %d requests were not answered", r.open.Load())
}

// awaitIdle waits until no request is open, and tells whether that came in time.
func (r *Runner) awaitIdle(tick <-chan time.Time, within time.Duration) bool {
	deadline := time.Now().Add(within)
	for r.open.Load() > 0 {
		if now := <-tick; now.After(deadline) {
			return false
		}
	}
	return true
}

// Place is what an admitted request has until it is released.
type Place struct {
	of    string
	bytes int
}

// Admit counts a request of so many bytes in, or refuses it. The domain is the subject's, not
// checked yet. The caller calls Release once the request is answered.
func (r *Runner) Admit(domain string, bytes int) (Place, error) {
	p := Place{of: unknownDomains, bytes: bytes}
	if domain == topology.ReservedDomain || r.catalog.Domain(domain) != nil {
		p.of = domain
	}
	if !r.enter(p) {
		return p, fault.New(fault.ResourceExhausted, "too many requests are under way").After(FullRetryAfter)
	}
	r.open.Add(1)
	if r.resting.Load() && r.resting.Swap(false) {
		select {
		case r.woken <- struct{}{}:
		default: // it is ready
		}
	}
	return p, nil
}

// Rest reports whether no request is open. Then Woken is ready, once, when one comes.
func (r *Runner) Rest() bool {
	r.resting.Store(true)
	return r.open.Load() == 0 || !r.resting.Swap(false)
}

// Woken is ready when a request has come after Rest.
func (r *Runner) Woken() <-chan struct{} { return r.woken }

func (r *Runner) enter(p Place) bool {
	if p.of == topology.ReservedDomain {
		return r.admin.Enter(p.of)
	}
	if !r.requests.Enter(p.of) {
		return false
	}
	if !r.bytes.Take(p.of, p.bytes) {
		r.requests.Leave(p.of)
		return false
	}
	return true
}

// Release counts a request out.
func (r *Runner) Release(p Place) {
	if p.of == topology.ReservedDomain {
		r.admin.Leave(p.of)
	} else {
		r.bytes.Give(p.of, p.bytes)
		r.requests.Leave(p.of)
	}
	r.open.Add(-1) // last: at 0 a drain is over
}

// Domain checks the domain of a call and whether it exists.
func (r *Runner) Domain(c *Call) error {
	if r.catalog.Domain(c.Domain) != nil { // what exists has been checked
		return nil
	}
	if err := validate.DomainToken(c.Domain); err != nil {
		return err
	}
	return NoDomain("", c.Domain)
}

// Rejects answers a request of a domain that does not exist, or one that is bad.
func (r *Runner) Rejects(c *Call, bad error, answer Answer) bool {
	err := cmp.Or(r.Domain(c), bad)
	if err != nil {
		answer(nil, err)
	}
	return err != nil
}

// Work is what answers a query.
type Work func(ctx context.Context) (codec.Message, error)

// Ask runs a request of a domain in a goroutine of its own, unless it is rejected.
func (r *Runner) Ask(c Call, bad error, answer Answer, do Work) {
	if !r.Rejects(&c, bad, answer) {
		r.Query(c.Domain, c.Deadline, answer, do)
	}
}

// Query runs f for a domain in a goroutine of its own and answers with what it returns.
func (r *Runner) Query(domain string, deadline time.Time, answer Answer, f Work) {
	if !r.queries.Enter(domain) {
		answer(nil, fault.New(fault.ResourceExhausted, "too many queries are under way").After(FullRetryAfter))
		return
	}
	r.start(deadline, answer, func() { r.queries.Leave(domain) }, f)
}

// Wait is Query where f may wait for as long as a request may.
func (r *Runner) Wait(domain string, deadline time.Time, answer Answer, f Work) {
	if !r.waits.Enter(domain) {
		answer(nil, fault.New(fault.ResourceExhausted, "too many requests wait for the end of a task").After(waitsFullRetryAfter))
		return
	}
	r.start(deadline, answer, func() { r.waits.Leave(domain) }, f)
}

// Administer is Query for an administrative request, unless it is bad: its place is that which it was admitted to.
func (r *Runner) Administer(c Call, bad error, answer Answer, f Work) {
	if bad != nil {
		answer(nil, bad)
		return
	}
	r.start(c.Deadline, answer, func() {}, f)
}

// start runs f in a goroutine. The place is freed before the answer, so that a client that asks again finds one.
func (r *Runner) start(deadline time.Time, answer Answer, leave func(), f Work) {
	go func() {
		ctx, cancel := context.WithDeadline(r.base, deadline)
		defer cancel()
		resp, err := r.guarded(ctx, f)
		leave()
		answer(resp, err)
	}()
}

// guarded turns a panic into INTERNAL: a defect of one query must not end all
// requests that are under way.
func (r *Runner) guarded(ctx context.Context, f Work) (resp codec.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("a query panicked", "panic", p, "stack", string(debug.Stack()))
			resp, err = nil, fault.New(fault.Internal, "the query failed")
		}
	}()
	return f(ctx)
}
