package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
)

// ErrUnproven is the error of a demo that ran to its end but did not show what it
// is to show: the summary tells which claim failed. A command exits with 1.
var ErrUnproven = errors.New("the demo's claims do not hold")

const (
	// workersPerTenant is how many worker programs each tenant has, so that limits
	// are seen to hold across them.
	workersPerTenant = 2
	// limitInForce is how long a changed concurrency limit may take to be in
	// force; the API promises a second.
	limitInForce = 1100 * time.Millisecond
	// setUpMax bounds the wait for a domain that was just made to be known.
	setUpMax = 15 * time.Second
	// stallMax ends the wait for the last tasks, and the look-up of all, when no further one has finished for so
	// long; longer than any delay or back-off of the workload.
	stallMax   = 30 * time.Second
	drainEvery = 200 * time.Millisecond
	// workerDrainMax bounds what a worker still runs when the demo ends: nothing.
	workerDrainMax = 5 * time.Second
)

// Run runs the demo on an engine that is up. When ctx ends, no more tasks are
// handed in; what was accepted is still worked off, checked and summed up, which
// takes some seconds, so the engine must go on until Run returns.
//
// It returns ErrUnproven where the summary shows a failed claim, and other errors
// where the demo could not run.
func Run(ctx context.Context, opts Options) error {
	if err := opts.complete(); err != nil {
		return err
	}
	p, err := newPlay(opts)
	if err != nil {
		return err
	}
	defer p.close()
	return p.run(ctx)
}

// play is one run of the demo.
type play struct {
	opts    Options
	began   time.Time
	bank    *bank
	tenants []*tenant
	conns   []*nats.Conn
	admin   *yard.Admin // makes the domains
	phase   atomic.Pointer[phase]
	lookups atomic.Int64 // accepted tasks that were found finished at the end
}

// phase is what the demo is doing.
type phase struct {
	name string
	at   time.Time
	of   time.Duration // at most; 0 = unknown
}

func newPlay(opts Options) (*play, error) {
	p := &play{opts: opts, began: time.Now(), bank: newBank(rand.New(rand.NewPCG(opts.Seed, 0)))}
	p.tenants = makeTenants(p.bank)
	if err := p.connect(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// connect makes a connection for the operator, who makes the domains, and one for each tenant.
func (p *play) connect() error {
	nc, err := p.dial("")
	if err != nil {
		return err
	}
	if p.admin, err = yard.NewAdmin(nc); err != nil {
		return err
	}
	for _, t := range p.tenants {
		t.ledger = newLedger(p.began)
		if nc, err = p.dial(t.domain); err != nil {
			return err
		}
		if t.client, err = yard.NewClient(nc, t.domain); err != nil {
			return err
		}
	}
	return nil
}

// dial makes a connection that close closes.
func (p *play) dial(domain string) (*nats.Conn, error) {
	nc, err := p.opts.Connect(domain)
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", cmp.Or(domain, "operator"), err)
	}
	p.conns = append(p.conns, nc)
	return nc, nil
}

func (p *play) close() {
	for _, nc := range p.conns {
		nc.Close()
	}
}

// run starts the programs in order; the script, which comes last, ends them all.
func (p *play) run(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var programs lifecycle.Group
	programs.Add("display", newDisplay(p))
	for _, t := range p.tenants {
		for i := range workersPerTenant {
			name := fmt.Sprintf("%s-worker-%d", t.domain, i+1)
			programs.Add(name, p.worker(t, name))
		}
	}
	programs.Add("script", lifecycle.Func(func(life context.Context) error {
		defer end()
		return p.script(ctx, life)
	}))
	p.enter("setting up", setUpMax)
	if err := p.setUp(ctx); err != nil {
		return err
	}
	if err := programs.Run(life); err != nil {
		return err
	}
	return p.conclude()
}

// enter begins a phase that takes at most so long; 0 = unknown.
func (p *play) enter(name string, of time.Duration) {
	p.phase.Store(&phase{name: name, at: time.Now(), of: of})
}

func (p *play) worker(t *tenant, name string) *yard.Worker {
	w := yard.NewWorker(t.client, t.tasklist,
		yard.WithConcurrency(t.concurrency),
		yard.WithIdentity(name),
		yard.WithMiddleware(t.ledger.watch),
		yard.WithDrainTimeout(workerDrainMax),
		yard.WithLogger(p.opts.Log),
	)
	for _, k := range t.kinds {
		k.register(w, k.Name)
	}
	return w
}

// setUp makes the domains and their types.
func (p *play) setUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setUpMax)
	defer cancel()
	for _, t := range p.tenants {
		domain := yard.Domain{Name: t.domain, Description: t.description, Retention: 24 * time.Hour}
		if _, err := p.admin.PutDomain(ctx, domain); err != nil {
			return fmt.Errorf("make domain %s: %w", t.domain, err)
		}
		for _, k := range t.kinds {
			if err := putType(ctx, t.client, k.TaskType); err != nil {
				return fmt.Errorf("make type %s of domain %s: %w", k.Name, t.domain, err)
			}
		}
	}
	if !backoff.Sleep(ctx, limitInForce) {
		return context.Cause(ctx)
	}
	return nil
}

// putType makes a type, and tolerates a frontend that does not know the
// domain yet.
func putType(ctx context.Context, client *yard.Client, t yard.TaskType) error {
	for {
		_, err := client.PutType(ctx, t)
		if fault.CodeOf(err) != fault.NotFound || !backoff.Sleep(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// script is the demo's plot: hand in tasks until ctx ends, at most for the
// duration asked for; wait until all are worked off; look each of them up.
func (p *play) script(ctx, life context.Context) error {
	sending, stop := context.WithTimeout(ctx, p.opts.Duration)
	defer stop()
	defer context.AfterFunc(life, stop)()
	p.enter("sending", p.opts.Duration)
	var producers lifecycle.Group
	stream := uint64(0) // of random numbers; the bank has that of 0
	for _, t := range p.tenants {
		for _, k := range t.kinds {
			stream++
			random := rand.New(rand.NewPCG(p.opts.Seed, stream))
			producers.Add(k.Name, &producer{tenant: t, kind: k, random: random, scale: p.opts.Scale, log: p.opts.Log})
		}
	}
	if err := producers.Run(sending); err != nil {
		return err
	}
	p.drain(life)
	p.enter("checking", 0)
	for _, t := range p.tenants {
		t.ledger.lookUp(life, t.client.Wire().Get, stallMax, &p.lookups)
	}
	return life.Err()
}

// drain waits until the tenants have seen the end of all accepted tasks, or nothing moves any more; the look-up
// that follows reports what is missing.
func (p *play) drain(ctx context.Context) {
	p.enter("draining", stallMax)
	seen, moved := -1, time.Now()
	for backoff.Sleep(ctx, drainEvery) && time.Since(moved) <= stallMax {
		finished, accepted := 0, 0
		for _, t := range p.tenants {
			c := t.ledger.snapshot()
			finished += c.finished()
			accepted += c.accepted
		}
		if finished >= accepted {
			return
		}
		if finished != seen {
			seen, moved = finished, time.Now()
		}
	}
}

// conclude checks the run and tells the result.
func (p *play) conclude() error {
	r := p.makeReport()
	write := writeSummary
	if p.opts.JSON {
		write = writeJSON
	}
	if err := write(p.opts.Out, r, p.opts.Command); err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	if !r.OK {
		return ErrUnproven
	}
	return nil
}
