package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
)

// beside runs the tasks of W3 while another load goes on, and returns when both have ended. All phases of a
// workload see the same machine, so their difference is what the other load costs.
func (l *load) beside(ctx context.Context, rate int, other func(context.Context) error) (report.Result, error) {
	ended := make(chan error, 1)
	go func() { ended <- other(ctx) }()
	r, err := l.latency(ctx, rate)
	return r, errors.Join(err, <-ended)
}

// steady runs W3.
func (l *load) steady(ctx context.Context) (report.Result, error) { return l.latency(ctx, w3Rate) }

// latency runs tasks as those of W3, at so many per second, of all its domains in turn, each of which has a worker. The loop is open: a
// task is submitted when its time has come, whatever became of those before it, so a stall is seen by all tasks it delays.
func (l *load) latency(ctx context.Context, rate int) (report.Result, error) {
	domains := l.domains
	if len(domains) == 0 {
		domains = []string{domain}
	}
	clients, err := l.target.clients(domains)
	if err != nil {
		return report.Result{}, err
	}
	workers, err := l.target.clients(domains)
	if err != nil {
		return report.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	seen := newStarts(l.tasks)
	running := make([]*sync.WaitGroup, len(domains))
	for i := range running {
		running[i] = runWorker(ctx, cancel, workers[i], tasklist, w3Concurrency, l.target.Types, func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
			seen.begin(time.Now(), a.Payload.Data)
			l.completed.add([]string{a.TaskID})
			return yard.Payload{}, nil
		})
	}
	before, err := l.target.read(ctx)
	if err != nil {
		return report.Result{}, err
	}
	l.target.openLoop(ctx, l.tasks, rate, nil, func(i int, _ time.Time) {
		l.submit(ctx, cancel, clients[i%len(clients)], seen, i, l.target.task(i))
	})
	l.await(ctx, cancel)
	if err := context.Cause(ctx); err != nil {
		return report.Result{}, err
	}
	r, err := l.target.since(ctx, before, l.tasks, time.Now())
	cancel(errDone)
	for _, w := range running {
		w.Wait()
	}
	if err = errors.Join(err, seen.err(), l.proof()); err != nil {
		return report.Result{}, err
	}
	start, submit := seen.quantiles()
	r.Start, r.Submit = &start, &submit
	l.p99s = seen.p99s(rate)
	return r, nil
}

// openLoop calls do for each of n when its time has come, whatever became of those before it, and waits for
// all that have begun. It ends early with ctx, or when over reports so, and returns how many have begun.
func (t *target) openLoop(
	ctx context.Context, n, rate int, over func() bool, do func(i int, due time.Time),
) (begun int) {
	var doing sync.WaitGroup
	defer doing.Wait()
	for began := time.Now(); begun < n; begun++ {
		i, due := begun, began.Add(time.Duration(begun*t.slower)*time.Second/time.Duration(rate))
		if !sleepUntil(ctx, due) || begun > 0 && over != nil && over() {
			break
		}
		doing.Go(func() { do(i, due) })
	}
	return begun
}

// submit submits the i-th task of an open loop; its number is its payload.
func (l *load) submit(ctx context.Context, cancel context.CancelCauseFunc, c *yard.Client, seen *starts, i int, task yard.Task) {
	task.Payload = binary.BigEndian.AppendUint64(slices.Clone(filler[8:]), uint64(i))
	seen.called[i] = time.Now()
	id, err := c.Submit(ctx, task)
	if err != nil {
		cancel(fmt.Errorf("submit: %w", err))
		return
	}
	l.accepted.add([]string{id})
	seen.answered[i] = time.Since(seen.called[i])
}

// starts is when each task was submitted and when its handler began.
type starts struct {
	called   []time.Time
	answered []time.Duration
	began    []atomic.Int64 // ns after called; 0 = not yet
	twice    atomic.Int64
	strange  atomic.Int64
}

func newStarts(n int) *starts {
	return &starts{called: make([]time.Time, n), answered: make([]time.Duration, n), began: make([]atomic.Int64, n)}
}

// begin notes the start of a handler.
func (s *starts) begin(now time.Time, payload []byte) {
	if len(payload) != payloadBytes {
		s.strange.Add(1)
		return
	}
	i := binary.BigEndian.Uint64(payload[payloadBytes-8:])
	if i >= uint64(len(s.began)) {
		s.strange.Add(1)
		return
	}
	if !s.began[i].CompareAndSwap(0, max(int64(now.Sub(s.called[i])), 1)) {
		s.twice.Add(1)
	}
}

func (s *starts) err() error {
	if n := s.twice.Load(); n > 0 {
		return fmt.Errorf("%d tasks were started twice", n)
	}
	if n := s.strange.Load(); n > 0 {
		return fmt.Errorf("%d handlers got a payload that was never sent", n)
	}
	return nil
}

// quantiles of the way to the handler, and of the way to the answer.
func (s *starts) quantiles() (start, submit report.Quantiles) {
	return report.QuantilesOf(s.waited()), report.QuantilesOf(s.answered)
}

// waited is the way of each task to the handler.
func (s *starts) waited() []time.Duration {
	all := make([]time.Duration, len(s.began))
	for i := range all {
		all[i] = time.Duration(s.began[i].Load())
	}
	return all
}

// p99s are those of the way to the handler, µs, one for the tasks of each second.
func (s *starts) p99s(rate int) (all []float64) {
	for second := range slices.Chunk(s.waited(), rate) {
		all = append(all, report.QuantilesOf(second).P99)
	}
	return all
}

// runWorker runs an SDK worker for tasks of so many types until ctx ends.
func runWorker(ctx context.Context, cancel context.CancelCauseFunc, c *yard.Client, tasklist string, concurrency, types int, handle yard.HandlerFunc) *sync.WaitGroup {
	w := yard.NewWorker(c, tasklist, yard.WithConcurrency(concurrency), yard.WithLogger(slog.New(slog.DiscardHandler)))
	for i := range min(types, typeCount) {
		w.HandleFunc(typeName(i), handle)
	}
	if types > typeCount {
		w.HandleRest(handle)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			cancel(fmt.Errorf("worker: %w", err))
		}
	})
	return &running
}
