package demo

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// requestTimeout bounds one request of a producer, also when the demo is asked to
// stop meanwhile: a submit given up half-way would leave its tasks' state open.
const requestTimeout = 10 * time.Second

// producer is the program that hands in one kind of a tenant's tasks.
type producer struct {
	*tenant
	kind
	random *rand.Rand
	scale  float64
	log    *slog.Logger
}

// Run hands in a burst at each beat until ctx ends.
func (p *producer) Run(ctx context.Context) error {
	beat := time.NewTicker(p.every)
	defer beat.Stop()
	for ctx.Err() == nil {
		p.send(ctx)
		select {
		case <-ctx.Done():
		case <-beat.C:
		}
	}
	return nil
}

// send hands in the tasks of one beat, and cancels those that are regretted.
func (p *producer) send(ctx context.Context) {
	tasks := p.burst(p.random, p.scale)
	if len(tasks) == 0 {
		return
	}
	for i := range tasks {
		tasks[i].Tasklist = p.tasklist
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	sentAt := time.Now()
	ids, err := p.client.SubmitMany(ctx, tasks)
	p.ledger.accept(&p.kind, ids, sentAt)
	if err != nil {
		p.log.Warn("submit", "domain", p.domain, "tasks", len(tasks)-len(ids), "error", err)
		p.ledger.refuse(len(tasks)-len(ids), fault.CodeOf(err) == fault.Unknown)
		return
	}
	regretted := slices.DeleteFunc(ids, func(string) bool { return p.random.Float64() >= p.regretted })
	if len(regretted) == 0 {
		return
	}
	// They are not due for seconds. A refused cancel leaves a task that runs, which is as good: the proof asks
	// the engine how each one ended.
	verdicts, err := p.client.Wire().Cancel(ctx, &yardv1.CancelRequest{TaskIds: regretted, Reason: "the customer does not want it"})
	if err != nil {
		p.log.Warn("cancel", "domain", p.domain, "tasks", len(regretted), "error", err)
	}
	for _, v := range verdicts {
		if v.Code == "OK" {
			p.ledger.cancel(1)
		}
	}
}

// burst makes the tasks that come at once.
func (k *kind) burst(r *rand.Rand, scale float64) []yard.Task {
	if k.scaleMax > 0 {
		scale = min(scale, k.scaleMax)
	}
	tasks := make([]yard.Task, scaled(r, pick(r, k.bursts)*scale))
	for i := range tasks {
		tasks[i] = yard.Task{Type: k.Name, Priority: k.priority, Payload: k.payload(r)}
		if k.delay > 0 {
			tasks[i].Delay = k.delay + time.Duration(r.Int64N(int64(k.delay)))
		}
	}
	return tasks
}

// scaled rounds n to a whole number, up or down by chance so that small scales
// come out right on the average.
func scaled(r *rand.Rand, n float64) int {
	whole := int(n)
	if r.Float64() < n-float64(whole) {
		whole++
	}
	return whole
}
