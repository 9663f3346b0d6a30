package demo

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// workersPerTenant is how many worker programs each tenant has, so that limits
// are seen to hold across them.
const workersPerTenant = 2

// requestTimeout bounds one request of a producer, also when the demo is asked to
// stop meanwhile: a submit given up half-way would leave its tasks' fate open.
const requestTimeout = 10 * time.Second

// streamBank is the stream of random numbers of the bank; a tenant's flows have
// the numbers below it.
const streamBank = 1 << 32

// verdictOK is the code of an entry that was done as asked.
const verdictOK = "OK"

// tenant is one customer of the engine.
type tenant struct {
	domain      string
	description string
	tasklist    string
	types       []yard.TaskType
	// concurrency of each of its workers.
	concurrency int
	register    func(*yard.Worker)
	flows       []flow
	ledger      *ledger
}

// flow is one regular source of tasks.
type flow struct {
	every time.Duration
	// tasks makes those of one beat; it is pure, so a seed repeats them.
	tasks func(r *rand.Rand, scale float64) []yard.Task
	// regret, if set, picks tasks of the beat to be cancelled right away.
	regret func(r *rand.Rand, tasks []yard.Task) []int
}

// producer is the program that hands in a tenant's tasks.
type producer struct {
	tenant tenant
	client *yard.Client
	seed   uint64
	stream uint64 // of random numbers; each flow takes the next
	scale  float64
	log    *slog.Logger
}

// Run runs the tenant's flows until ctx ends.
func (p *producer) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for i, f := range p.tenant.flows {
		r := rand.New(rand.NewPCG(p.seed, p.stream+uint64(i)))
		running.Go(func() { p.run(ctx, f, r) })
	}
	return nil
}

func (p *producer) run(ctx context.Context, f flow, r *rand.Rand) {
	beat := time.NewTicker(f.every)
	defer beat.Stop()
	for ctx.Err() == nil {
		p.send(ctx, f, r)
		select {
		case <-ctx.Done():
		case <-beat.C:
		}
	}
}

// send hands in the tasks of one beat, and cancels what is regretted.
func (p *producer) send(ctx context.Context, f flow, r *rand.Rand) {
	tasks := f.tasks(r, p.scale)
	if len(tasks) == 0 {
		return
	}
	for i := range tasks {
		tasks[i].Tasklist = p.tenant.tasklist
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	sentAt := time.Now()
	ids, err := p.client.SubmitMany(ctx, tasks)
	p.tenant.ledger.accept(tasks, ids, sentAt)
	if err != nil {
		p.log.Warn("submit", "domain", p.tenant.domain, "tasks", len(tasks)-len(ids), "error", err)
		p.tenant.ledger.refuse(len(tasks)-len(ids), fault.CodeOf(err) == fault.Unknown)
		return
	}
	if f.regret == nil {
		return
	}
	p.cancel(ctx, f.regret(r, tasks), ids)
}

// cancel cancels some of the tasks, which are not due for seconds. A refused
// cancel leaves a task that runs, which is as good: the proof asks the engine how
// each one ended.
func (p *producer) cancel(ctx context.Context, picked []int, ids []string) {
	if len(picked) == 0 {
		return
	}
	req := &yardv1.CancelRequest{Reason: "the customer does not want it"}
	for _, i := range picked {
		req.TaskIds = append(req.TaskIds, ids[i])
	}
	verdicts, err := p.client.Wire().Cancel(ctx, req)
	if err != nil {
		p.log.Warn("cancel", "domain", p.tenant.domain, "tasks", len(picked), "error", err)
	}
	for _, v := range verdicts {
		if v.Code == verdictOK {
			p.tenant.ledger.cancel(1)
		}
	}
}

// workerName is the identity of a tenant's i-th worker, from 0.
func (t *tenant) workerName(i int) string { return fmt.Sprintf("%s-worker-%d", t.domain, i+1) }

// scaled rounds n to a whole number, up or down by chance so that small scales
// come out right on the average.
func scaled(r *rand.Rand, n float64) int {
	whole := int(n)
	if r.Float64() < n-float64(whole) {
		whole++
	}
	return whole
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
