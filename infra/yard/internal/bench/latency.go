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
	running := l.workers(ctx, cancel, worker[0], seen)

	m, err := l.target.meter(ctx)
	if err != nil {
		return Result{}, err
	}
	var submitting sync.WaitGroup
	for i := range l.tasks {
		due := m.began.Add(time.Duration(i*l.target.slower) * time.Second / time.Duration(rate))
		if !sleepUntil(ctx, due) {
			break
		}
		c := clients[i%len(clients)]
		submitting.Go(func() {
			task := l.target.task(i)
			task.Payload = binary.BigEndian.AppendUint64(slices.Clone(filler[8:]), uint64(i))
			seen.called[i] = time.Now()
			id, err := c.Submit(ctx, task)
			if err != nil {
				cancel(fmt.Errorf("submit: %w", err))
				return
			}
			l.accepted.add([]string{id})
			seen.answered[i] = time.Since(seen.called[i])
		})
	}
	submitting.Wait()
	l.completedBy(ctx, cancel, seen)
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
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

// workers runs an SDK worker whose handlers note when they begin.
func (l *load) workers(ctx context.Context, cancel context.CancelCauseFunc, c *yard.Client, seen *starts) *sync.WaitGroup {
	w := yard.NewWorker(c, tasklist, yard.WithConcurrency(w3Concurrency), yard.WithLogger(slog.New(slog.DiscardHandler)))
	handle := func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
		seen.begin(time.Now(), a.Payload.Data)
		l.completed.add([]string{a.TaskID})
		return yard.Payload{}, nil
	}
	for i := range min(l.target.types, typeCount) {
		w.HandleFunc(typeName(i), handle)
	}
	if l.target.types > typeCount {
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

// completedBy waits until every handler has begun.
func (l *load) completedBy(ctx context.Context, cancel context.CancelCauseFunc, seen *starts) {
	deadline := time.Now().Add(stallAfter)
	for seen.count.Load() < int64(l.tasks) {
		if time.Now().After(deadline) {
			cancel(fmt.Errorf("%d of %d handlers began within %v", seen.count.Load(), l.tasks, stallAfter))
			return
		}
		if !sleepUntil(ctx, time.Now().Add(10*time.Millisecond)) {
			return
		}
	}
}

// sleepUntil returns false if ctx ended first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
