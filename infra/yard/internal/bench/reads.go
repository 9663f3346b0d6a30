package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
)

// reads runs W9: first the tasks that are read, as W1; then the tasks of W3, alone
// and beside gets. Before the second phase there are gets alone: the first ones find
// the server with none of the archive in memory.
func (l *load) reads(ctx context.Context) (report.Result, error) {
	l.brief = true
	filled, err := l.drain(ctx, bulk)
	if err != nil {
		return report.Result{}, fmt.Errorf("fill: %w", err)
	}
	if l.progress != nil {
		fmt.Fprintf(l.progress, "   filled in %.1f s\n", filled.Seconds)
	}
	if !sleepUntil(ctx, time.Now().Add(time.Duration(l.tasks)*w9SettlePerTask)) {
		return report.Result{}, ctx.Err()
	}
	seconds := min(w9Seconds, float64(l.tasks)/w9TaskRate)
	tasks := int(seconds * w9TaskRate)
	quiet, err := (&load{target: l.target, tasks: tasks}).latency(ctx, w9TaskRate)
	if err != nil {
		return report.Result{}, fmt.Errorf("without gets: %w", err)
	}
	first, err := l.newGets(int(seconds*w9GetRate/5), w9GetRate)
	if err != nil {
		return report.Result{}, err
	}
	gets := *first
	gets.took = make([]time.Duration, int(seconds*w9GetRate))
	if err := first.run(ctx); err != nil {
		return report.Result{}, fmt.Errorf("first gets: %w", err)
	}
	loud, err := (&load{target: l.target, tasks: tasks}).beside(ctx, w9TaskRate, gets.run)
	if err != nil {
		return report.Result{}, fmt.Errorf("beside gets: %w", err)
	}
	n := float64(len(gets.took))
	cpu := func(r report.Result) float64 { return r.Cost.CPUPer100k * float64(r.Tasks) / 100_000 }
	loud.Reads = &report.Reads{
		Gets: len(gets.took), GetsPerSecond: n / gets.lasted.Seconds(), Get: report.QuantilesOf(gets.took),
		FirstGet: report.QuantilesOf(first.took), QuietStart: *quiet.Start, CPUPerGet: (cpu(loud) - cpu(quiet)) / n * 1e6,
	}
	loud.Tasks = l.tasks
	return loud, nil
}

// gets is an open loop of gets.
type gets struct {
	target  *target
	clients []*yard.Client
	ids     []string
	rate    int             // per second
	took    []time.Duration // from when it was due
	lasted  time.Duration
}

func (l *load) newGets(n, rate int) (*gets, error) {
	g := &gets{target: l.target, ids: l.accepted.ids, rate: rate, took: make([]time.Duration, n)}
	var err error
	g.clients, err = l.target.clients([]string{domain})
	return g, err
}

func (g *gets) run(ctx context.Context) error {
	var failed atomic.Pointer[error]
	began := time.Now()
	g.target.openLoop(ctx, len(g.took), g.rate, nil, func(i int, due time.Time) {
		c, id := g.clients[i%len(g.clients)], g.ids[rand.IntN(len(g.ids))]
		task, err := c.Wire().Get(ctx, id)
		g.took[i] = time.Since(due)
		if err == nil && (task.TaskId != id || task.State != yardv1.TaskState_TASK_STATE_COMPLETED) {
			err = fmt.Errorf("it is %s, %s", task.TaskId, task.State)
		}
		if err != nil {
			err = fmt.Errorf("get task %s: %w", id, err)
			failed.Store(&err)
		}
	})
	g.lasted = time.Since(began)
	if err := failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}
