package yard

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Admin manages domains. Its subjects belong to no domain, so NATS
// permissions can keep tenants from using them. It is safe for concurrent use.
type Admin struct{ transport }

// NewAdmin makes an admin client on a connection that the caller keeps and closes.
func NewAdmin(nc *nats.Conn, opts ...ClientOption) (*Admin, error) {
	if nc == nil {
		return nil, fault.New(fault.InvalidArgument, "a client needs a NATS connection")
	}
	return &Admin{transport{nc: nc, timeout: newClientConfig(opts).timeout}}, nil
}

// Domain is a tenant.
type Domain struct {
	// Name is [A-Za-z0-9_-]{1,64}; "admin" is reserved.
	Name string
	// Description is for people; at most 1024 bytes.
	Description string
	// Retention is how long finished tasks are kept, 15 min to 366 days. Default 7 days.
	Retention time.Duration
	// MaxConcurrency bounds the attempts that run at once in the domain, on any number of nodes, 1..1000000. Default 0 =
	// no limit. A changed limit takes effect within a second.
	MaxConcurrency int
	// MaxConcurrencyPerGroup bounds the attempts of each group (Task.Group) that run at once, on any number of nodes,
	// 1..1000000; a group may have its own number (Group.MaxConcurrency). Tasks without a group are not counted. Default 0 = no limit.
	MaxConcurrencyPerGroup int
	// Rate is how many attempts of the domain start in a time. Default: any number.
	Rate Rate
	// DeadLettersMaxAge is how long dead letters are kept after they were stored, about when their tasks ended, 1 minute to 366 days. Older ones are purged,
	// within a minute. Default 0: until they are redriven or purged.
	DeadLettersMaxAge time.Duration
	// DeadLettersMax is how many dead letters are kept, 1..10000000; the oldest beyond that are purged, within a minute. Default 0: all.
	DeadLettersMax int64
	// Quota bounds what the domain asks of the cluster.
	Quota Quota
	// Weight is how many turns the domain has for each one of a domain with weight 1, where domains wait for their turn, 1..100. Default 0 = 1.
	Weight int
	// FullWeightTasksPerSecond is how many tasks come in with the full weight of the domain in a second, 1..10000000. Tasks over it are not refused: they are
	// read with a low class, one turn of five, while other domains have something to read. Default 0 = all.
	FullWeightTasksPerSecond int64
	// FullWeightShadow: tasks over FullWeightTasksPerSecond are counted only, and come in as all others.
	FullWeightShadow bool
	// Events: history publishes what becomes of the domain's tasks (package events). LateAfter and StuckAfter are for how long a task is due and has not
	// started, and for how long an attempt runs, until that is an event, too, 1 s to 366 days. Default 0: it is none.
	Events                bool
	LateAfter, StuckAfter time.Duration
	// TraceRatio is the share of its submits and scheduled runs whose traces are recorded, 0 to 1. Nil: the samplers of the services decide.
	TraceRatio *float64
	// Revision changes with every put. PutDomain replaces only this revision, or any if it is 0.
	Revision int64
	// Pause and Drain are those of the whole domain, if there are any; GetDomain has them, and PutDomain leaves them as they are.
	Pause, Drain *Pause
	// Use is what a domain with a quota asks of the cluster just now, as far as one frontend knows. GetDomain has it.
	Use *Quota
}

// Quota bounds what a domain asks of the cluster, on all frontends together; 0 = any number. A request over it fails with RESOURCE_EXHAUSTED.
type Quota struct {
	// They are the tasks that are submitted in a second, 1..10000000, and their bytes as stored, 1000..100000000000; the last request may exceed it by itself.
	SubmitTasksPerSecond, SubmitBytesPerSecond int64
	OpenPolls                                  int // polls that wait at once, 1..1000000
	// They are the tasks that wait and do not run, 1..1000000000, delayed ones and those on disk, too, and about their bytes, 1000..1000000000000000.
	WaitingTasks, StoredBytes int64
}

// Wire is the quota as the API writes it; nil if there is none.
func (q *Quota) Wire() *yardv1.Quota {
	if q == nil || *q == (Quota{}) {
		return nil
	}
	return &yardv1.Quota{
		SubmitTasksPerS: q.SubmitTasksPerSecond, SubmitBytesPerS: q.SubmitBytesPerSecond, OpenPolls: int32Of(q.OpenPolls),
		WaitingTasks: q.WaitingTasks, StoredBytes: q.StoredBytes,
	}
}

func quotaOf(w *yardv1.Quota) Quota {
	return Quota{w.GetSubmitTasksPerS(), w.GetSubmitBytesPerS(), int(w.GetOpenPolls()), w.GetWaitingTasks(), w.GetStoredBytes()}
}

// PutDomain creates or changes a domain and returns it as stored. STALE: another revision than
// d's is stored.
func (a *Admin) PutDomain(ctx context.Context, d Domain) (Domain, error) {
	resp, err := call[yardv1.PutDomainResponse](ctx, &a.transport, topology.Admin("domains.put"), &yardv1.PutDomainRequest{Domain: d.Wire()})
	return domainOf(resp.GetDomain()), err
}

// GetDomain returns a domain, or NOT_FOUND.
func (a *Admin) GetDomain(ctx context.Context, name string) (Domain, error) {
	resp, err := call[yardv1.GetDomainResponse](ctx, &a.transport, topology.Admin("domains.get"), &yardv1.GetDomainRequest{Name: name})
	d := domainOf(resp.GetDomain())
	d.Pause, d.Drain = maybePaused(resp.GetPause()), maybePaused(resp.GetDrain())
	if use := resp.GetUse(); use != nil {
		d.Use = new(quotaOf(use))
	}
	return d, err
}

// ListDomains returns all domains, by name.
func (a *Admin) ListDomains(ctx context.Context) ([]Domain, error) {
	return collect(a.Domains(ctx))
}

// DeleteDomain deletes a domain, its task types and its limits, and returns it as it was: only the given
// revision of it (STALE if another one is stored), or any if that is 0. FAILED_PRECONDITION: it
// holds unfinished tasks; how many is in the error's detail, by state. NOT_FOUND: there is none, or an
// earlier try deleted it and its answer was lost.
func (a *Admin) DeleteDomain(ctx context.Context, name string, revision int64) (Domain, error) {
	resp, err := call[yardv1.DeleteDomainResponse](ctx, &a.transport, topology.Admin("domains.delete"), &yardv1.DeleteDomainRequest{Name: name, Revision: revision})
	return domainOf(resp.GetDomain()), err
}

// PauseDomain has no task of a domain start until it is resumed, and returns the pause as stored, as Pause does. NOT_FOUND: there is no such domain.
func (a *Admin) PauseDomain(ctx context.Context, name string, o PauseOptions) (Pause, error) {
	resp, err := call[yardv1.PauseResponse](ctx, &a.transport, topology.Admin("domains.pause"), o.wire(name))
	return pauseOf(resp.GetPause()), err
}

// DrainDomain has submits to a domain refused until the drain ends, and returns that as stored, as Drain does. NOT_FOUND: there is no such domain.
func (a *Admin) DrainDomain(ctx context.Context, name string, o PauseOptions) (Pause, error) {
	resp, err := call[yardv1.DrainResponse](ctx, &a.transport, topology.Admin("domains.drain"), o.wire(name))
	return pauseOf(resp.GetDrain()), err
}

// ResumeDomain ends the pause of a domain, or its drain, and returns that as it was, as Resume does.
func (a *Admin) ResumeDomain(ctx context.Context, name string, drain bool) (Pause, error) {
	resp, err := call[yardv1.PauseResponse](ctx, &a.transport, topology.Admin("domains.resume"), &yardv1.ResumeRequest{Name: name, Drain: drain})
	return pauseOf(resp.GetPause()), err
}

// TopDomains returns which domains do and have most, and for which limits tasks wait, as it is on the wire.
func (a *Admin) TopDomains(ctx context.Context, req *yardv1.TopDomainsRequest) (*yardv1.TopDomainsResponse, error) {
	return call[yardv1.TopDomainsResponse](ctx, &a.transport, topology.Admin("domains.top"), req)
}

// ListQueues returns a page of what history has in memory, and what waits on disk behind it, by partition and queue, as it is on the wire.
func (a *Admin) ListQueues(ctx context.Context, req *yardv1.ListQueuesRequest) (*yardv1.ListQueuesResponse, error) {
	return call[yardv1.ListQueuesResponse](ctx, &a.transport, topology.Admin("queues.list"), req)
}

// Wire is the domain as the API writes it.
func (d Domain) Wire() *yardv1.Domain {
	return &yardv1.Domain{
		Name: d.Name, Description: d.Description, RetentionMs: milliseconds(d.Retention),
		MaxConcurrency: int32Of(d.MaxConcurrency), MaxConcurrencyPerGroup: int32Of(d.MaxConcurrencyPerGroup),
		Rate: d.Rate.wire(), DeadLettersMaxAgeMs: milliseconds(d.DeadLettersMaxAge), DeadLettersMax: d.DeadLettersMax, Quota: d.Quota.Wire(), Weight: int32Of(d.Weight),
		FullWeightTasksPerS: d.FullWeightTasksPerSecond, FullWeightShadow: d.FullWeightShadow, Events: d.Events, LateAfterMs: milliseconds(d.LateAfter), StuckAfterMs: milliseconds(d.StuckAfter), TraceRatio: d.TraceRatio, Revision: d.Revision,
	}
}

func domainOf(w *yardv1.Domain) Domain {
	if w == nil {
		return Domain{}
	}
	return Domain{
		Name: w.GetName(), Description: w.GetDescription(),
		Retention:      time.Duration(w.GetRetentionMs()) * time.Millisecond,
		MaxConcurrency: int(w.GetMaxConcurrency()), MaxConcurrencyPerGroup: int(w.GetMaxConcurrencyPerGroup()), Rate: rateOf(w.GetRate()), Revision: w.GetRevision(),
		DeadLettersMaxAge: milliTime(w.GetDeadLettersMaxAgeMs()), DeadLettersMax: w.GetDeadLettersMax(), Quota: quotaOf(w.GetQuota()), Weight: int(w.GetWeight()),
		FullWeightTasksPerSecond: w.GetFullWeightTasksPerS(), FullWeightShadow: w.GetFullWeightShadow(), Events: w.GetEvents(), LateAfter: milliTime(w.GetLateAfterMs()), StuckAfter: milliTime(w.GetStuckAfterMs()),
		TraceRatio: w.TraceRatio,
	}
}
