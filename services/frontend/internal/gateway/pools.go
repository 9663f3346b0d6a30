package gateway

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/admission"
)

// pools bound what is under way at a time. Each is shared out by domain, so that a domain that
// asks without end leaves the others room (I14); the administration has its own.
type pools struct {
	requests *admission.Room
	bytes    *admission.Room // of those requests
	queries  *admission.Room
	waits    *admission.Room
	polls    *admission.Room // in parts of pollPlaceBytes
	admin    *admission.Room
}

const (
	// adminMax bounds the administrative requests under way; three quarters of it are in use,
	// since they are one's.
	adminMax = 64
	// unknownDomains is the one account for the requests of all domains that do not exist:
	// each made-up name would else have a share of its own.
	unknownDomains = ""
	// pollPlaceBytes is how much of a poll one place stands for, and typeBytes what each of its types takes
	// in memory beyond its encoding.
	pollPlaceBytes = 1 << 10
	typeBytes      = 32
	// queuedSubmitsBytes bounds the submits of a partition that wait for their turn, in bytes.
	queuedSubmitsBytes = 64 << 20
	// queuedEventsBytes bounds the events of a partition that wait for their turn, in bytes.
	queuedEventsBytes = 64 << 20
)

func newPools(c Config) pools {
	return pools{
		requests: admission.New(c.RequestsMax), bytes: admission.New(c.RequestBytesMax),
		queries: admission.New(c.QueriesMax), waits: admission.New(c.WaitsMax), polls: admission.New(c.PollsMax),
		admin: admission.New(adminMax),
	}
}

// Place is what an admitted request holds until it is released.
type Place struct {
	of    string
	bytes int
}

// Admit counts a request of so many bytes in, or refuses it. The domain is the subject's, not
// checked yet. The caller calls Release once the request is answered.
func (g *Gateway) Admit(domain string, bytes int) (Place, error) {
	p := Place{of: unknownDomains, bytes: bytes}
	if domain == topology.ReservedDomain || g.Catalog.Domain(domain) != nil {
		p.of = domain
	}
	if !g.pools.admit(p) {
		return p, fault.New(fault.ResourceExhausted, "too many requests are under way").After(fullRetryAfter)
	}
	g.open.Add(1)
	return p, nil
}

func (r *pools) admit(p Place) bool {
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
func (g *Gateway) Release(p Place) {
	if p.of == topology.ReservedDomain {
		g.pools.admin.Leave(p.of)
	} else {
		g.pools.bytes.Give(p.of, p.bytes)
		g.pools.requests.Leave(p.of)
	}
	g.open.Add(-1) // last: at 0 a drain is over
}

// work is what answers a query.
type work func(ctx context.Context) (codec.Message, error)

// query runs f for a domain in a goroutine of its own and answers with what it returns.
func (g *Gateway) query(domain string, deadline time.Time, answer Answer, f work) {
	if !g.pools.queries.Enter(domain) {
		answer(nil, fault.New(fault.ResourceExhausted, "too many queries are under way").After(fullRetryAfter))
		return
	}
	g.start(deadline, answer, func() { g.pools.queries.Leave(domain) }, f)
}

// wait is query where f may wait for as long as a request may.
func (g *Gateway) wait(domain string, deadline time.Time, answer Answer, f work) {
	if !g.pools.waits.Enter(domain) {
		answer(nil, fault.New(fault.ResourceExhausted, "too many requests wait for the end of a task").After(waitsFullRetryAfter))
		return
	}
	g.start(deadline, answer, func() { g.pools.waits.Leave(domain) }, f)
}

// administer is query for an administrative request, unless it has a fault: its place is that which it was admitted to.
func (g *Gateway) administer(deadline time.Time, fault error, answer Answer, f work) {
	if fault != nil {
		answer(nil, fault)
		return
	}
	g.start(deadline, answer, func() {}, f)
}

// start runs f in a goroutine. The place is freed before the answer, so that a client that asks again finds one.
func (g *Gateway) start(deadline time.Time, answer Answer, leave func(), f work) {
	go func() {
		ctx, cancel := context.WithDeadline(g.base, deadline)
		defer cancel()
		resp, err := g.guarded(ctx, f)
		leave()
		answer(resp, err)
	}()
}

// guarded turns a panic into INTERNAL: a defect of one query must not end all
// requests that are under way.
func (g *Gateway) guarded(ctx context.Context, f work) (resp codec.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.Log.Error("a query panicked", "panic", p, "stack", string(debug.Stack()))
			resp, err = nil, fault.New(fault.Internal, "the query failed")
		}
	}()
	return f(ctx)
}
