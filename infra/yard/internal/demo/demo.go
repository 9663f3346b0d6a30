package demo

import (
	"context"
	"errors"
	"fmt"
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
	// limitInForce is how long a changed concurrency limit may take to be in
	// force; the API promises a second.
	limitInForce = 1100 * time.Millisecond
	// setUpMax bounds the wait for a domain that was just made to be known.
	setUpMax = 15 * time.Second
	// drainStallMax ends the wait for the last tasks when none has finished for so
	// long; longer than any delay or back-off of the workload.
	drainStallMax = 30 * time.Second
	drainEvery    = 200 * time.Millisecond
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
	d, err := newDemo(opts)
	if err != nil {
		return err
	}
	defer d.close()
	return d.run(ctx)
}

// demo is one run.
type demo struct {
	opts    Options
	began   time.Time
	bank    *bank
	tenants []*tenant
	conns   []*nats.Conn
	clients map[string]*yard.Client // of the producers, by domain
	admin   *yard.Admin             // makes the domains
	stage   stage
	probe   *probe
	looked  atomic.Int64        // accepted tasks looked up at the end
	ends    map[string][]ending // by domain; written by the script, read after it
}

func newDemo(opts Options) (*demo, error) {
	d := &demo{opts: opts, began: time.Now(), clients: map[string]*yard.Client{}, ends: map[string][]ending{}}
	bank, err := newBank(opts.Seed)
	if err != nil {
		return nil, err
	}
	d.bank = bank
	shop, err := newShop()
	if err != nil {
		return nil, errors.Join(err, bank.listener.Close())
	}
	for _, t := range []tenant{shop, newMedia(), newPayouts(bank)} {
		t.ledger = newLedger(d.began)
		d.tenants = append(d.tenants, &t)
	}
	if err := d.connectAll(); err != nil {
		d.close()
		return nil, err
	}
	d.probe = newProbe(d.tenants, d.clients)
	return d, nil
}

// connectAll connects who makes the domains, and the producers.
func (d *demo) connectAll() error {
	nc, err := d.dial("", "demo-operator")
	if err != nil {
		return err
	}
	if d.admin, err = yard.NewAdmin(nc); err != nil {
		return err
	}
	for _, t := range d.tenants {
		if d.clients[t.domain], err = d.connect(t, t.domain+"-producer"); err != nil {
			return err
		}
	}
	return nil
}

// connect makes a client on a connection of its own.
func (d *demo) connect(t *tenant, name string) (*yard.Client, error) {
	nc, err := d.dial(t.domain, name)
	if err != nil {
		return nil, err
	}
	return yard.NewClient(nc, t.domain)
}

// dial makes a connection that close closes.
func (d *demo) dial(domain, name string) (*nats.Conn, error) {
	nc, err := d.opts.Connect(domain, name)
	if err != nil {
		return nil, fmt.Errorf("connect %s: %w", name, err)
	}
	d.conns = append(d.conns, nc)
	return nc, nil
}

func (d *demo) close() {
	// Closed already where Run served; a second close only says so.
	_ = d.bank.listener.Close()
	for _, nc := range d.conns {
		nc.Close()
	}
}

// run starts the programs in order; the script, which comes last, ends them all.
func (d *demo) run(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var programs lifecycle.Group
	programs.Add("bank", d.bank)
	programs.Add("probe", d.probe)
	programs.Add("display", newDisplay(d))
	for _, t := range d.tenants {
		for i := range workersPerTenant {
			w, err := d.worker(t, t.workerName(i))
			if err != nil {
				return err
			}
			programs.Add(t.workerName(i), w)
		}
	}
	programs.Add("script", lifecycle.Func(func(life context.Context) error {
		defer end()
		return d.script(ctx, life)
	}))
	d.stage.enter("setting up", setUpMax)
	if err := d.setUp(ctx); err != nil {
		return err
	}
	if err := programs.Run(life); err != nil {
		return err
	}
	return d.conclude()
}

func (d *demo) worker(t *tenant, name string) (*yard.Worker, error) {
	client, err := d.connect(t, name)
	if err != nil {
		return nil, err
	}
	w := yard.NewWorker(client, t.tasklist,
		yard.WithConcurrency(t.concurrency),
		yard.WithIdentity(name),
		yard.WithMiddleware(t.ledger.watch),
		yard.WithDrainTimeout(workerDrainMax),
		yard.WithLogger(d.opts.Log),
	)
	t.register(w)
	return w, nil
}

// setUp makes the domains and their types.
func (d *demo) setUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setUpMax)
	defer cancel()
	for _, t := range d.tenants {
		client := d.clients[t.domain]
		domain := yard.Domain{Name: t.domain, Description: t.description, Retention: 24 * time.Hour}
		if _, err := d.admin.PutDomain(ctx, domain); err != nil {
			return fmt.Errorf("make domain %s: %w", t.domain, err)
		}
		for _, taskType := range t.types {
			if err := putType(ctx, client, taskType); err != nil {
				return fmt.Errorf("make type %s of domain %s: %w", taskType.Name, t.domain, err)
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
func (d *demo) script(ctx, life context.Context) error {
	sending, stop := context.WithTimeout(ctx, d.opts.Duration)
	defer stop()
	defer context.AfterFunc(life, stop)()
	d.stage.enter("sending", d.opts.Duration)
	var producers lifecycle.Group
	for i, t := range d.tenants {
		producers.Add(t.domain, &producer{
			tenant: *t, client: d.clients[t.domain], log: d.opts.Log,
			seed: d.opts.Seed, stream: uint64(i) << 16, scale: d.opts.Scale,
		})
	}
	if err := producers.Run(sending); err != nil {
		return err
	}
	d.drain(life)
	d.stage.enter("checking", 0)
	for _, t := range d.tenants {
		d.ends[t.domain] = lookUp(life, t.ledger.accepted(), d.clients[t.domain].Wire().Get, d.opts.lookUpStall, &d.looked)
	}
	return life.Err()
}

// drain waits until the engine has nothing left of any tenant, or nothing moves
// any more; the look-up that follows tells what is missing.
func (d *demo) drain(ctx context.Context) {
	d.stage.enter("draining", drainStallMax)
	finished, moved := -1, time.Now()
	for backoff.Sleep(ctx, drainEvery) {
		now := 0
		for _, t := range d.tenants {
			now += t.ledger.snapshot().finished()
		}
		if now != finished {
			finished, moved = now, time.Now()
		}
		if d.probe.idleSince(d.stage.since()) || time.Since(moved) > drainStallMax {
			return
		}
	}
}

// conclude checks the run and tells the result.
func (d *demo) conclude() error {
	r := d.makeReport()
	write := writeSummary
	if d.opts.JSON {
		write = writeJSON
	}
	if err := write(d.opts.Out, r, d.opts.Command); err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	if !r.OK {
		return ErrUnproven
	}
	return nil
}
