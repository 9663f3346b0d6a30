package bench

import (
	"cmp"
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
)

// latency runs W3, at so many tasks per second. The loop is open: a task is submitted
// when its time has come, whatever became of those before it, so a stall is seen by all
// tasks it delays.
func (l *load) latency(ctx context.Context, rate int) (Result, error) {
	clients, err := l.target.clients([]string{domain})
	if err != nil {
		return Result{}, err
	}
	worker, err := l.target.clients([]string{domain})
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	seen := newStarts(l.tasks)
	running := runWorker(ctx, cancel, worker[0], tasklist, w3Concurrency, l.target.Types, func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
		seen.begin(time.Now(), a.Payload.Data)
		l.completed.add([]string{a.TaskID})
		return yard.Payload{}, nil
	})
	m, err := l.target.meter(ctx)
	if err != nil {
		return Result{}, err
	}
	var submitting sync.WaitGroup
	for i := range l.tasks {
		if !sleepUntil(ctx, l.target.due(m.began, i, rate)) {
			break
		}
		submitting.Go(func() { l.submit(ctx, cancel, clients[i%len(clients)], seen, i, l.target.task(i)) })
	}
	submitting.Wait()
	err = waitFor(ctx, stallAfter, 10*time.Millisecond, func() (bool, string, error) {
		n := seen.count.Load()
		return n >= int64(l.tasks), fmt.Sprintf("%d of %d handlers began", n, l.tasks), nil
	})
	if err = cmp.Or(context.Cause(ctx), err); err != nil {
		return Result{}, err
	}
	r, err := m.end(ctx, l.tasks, time.Now())
	cancel(errDone)
	running.Wait()
	if err = errors.Join(err, seen.err(), l.proof()); err != nil {
		return Result{}, err
	}
	start, submit := seen.quantiles()
	r.Start, r.Submit = &start, &submit
	return r, nil
}

// due is when the i-th request of an open loop is sent.
func (t *target) due(began time.Time, i, rate int) time.Time {
	return began.Add(time.Duration(i*t.slower) * time.Second / time.Duration(rate))
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
	count    atomic.Int64
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
		return
	}
	s.count.Add(1)
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
func (s *starts) quantiles() (start, submit Quantiles) {
	began := make([]time.Duration, len(s.began))
	for i := range began {
		began[i] = time.Duration(s.began[i].Load())
	}
	return quantiles(began), quantiles(s.answered)
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
