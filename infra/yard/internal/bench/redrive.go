package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
)

// deadLetterTasklist has the tasks of W12 that die and come back.
const deadLetterTasklist = "bench-letters"

// redrive runs W12: tasks as in W3, alone and while all dead letters come back, at a rate.
func (l *load) redrive(ctx context.Context) (report.Result, error) {
	clients, err := l.target.clients([]string{domain})
	if err != nil {
		return report.Result{}, err
	}
	c := clients[0]
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var failing atomic.Bool
	failing.Store(true)
	again := new(tally)
	working := runWorker(ctx, cancel, c, deadLetterTasklist, w3Concurrency, 1, func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
		if failing.Load() {
			return yard.Payload{}, errors.New("not yet")
		}
		again.add([]string{a.TaskID})
		return yard.Payload{}, nil
	})
	died, err := l.dead(ctx, c)
	if err != nil {
		return report.Result{}, err
	}
	failing.Store(false)
	tasks := max(l.tasks*w12Rate/w12RedriveRate, 1)
	quiet, err := (&load{target: l.target, tasks: tasks}).latency(ctx, w12Rate)
	if err != nil {
		return report.Result{}, fmt.Errorf("alone: %w", err)
	}
	redrive := &report.Redrive{DeadLetters: len(died), QuietStart: *quiet.Start}
	r, err := (&load{target: l.target, tasks: tasks}).beside(ctx, w12Rate, func(ctx context.Context) error {
		return l.bringBack(ctx, c, redrive)
	})
	if err != nil {
		return report.Result{}, fmt.Errorf("beside the redrive: %w", err)
	}
	err = waitFor(ctx, stallAfter, 10*time.Millisecond, func() (bool, string, error) {
		n := again.n.Load()
		return n >= int64(len(died)), fmt.Sprintf("%d of %d tasks that came back were run", n, len(died)), nil
	})
	if err != nil {
		return report.Result{}, err
	}
	cancel(errDone)
	working.Wait()
	redrive.Ratio = report.Round(r.Start.P99 / quiet.Start.P99)
	r.Tasks, r.Redrive = l.tasks, redrive
	return r, prove(l.tasks, died, again.ids)
}

// dead returns the ids of as many dead letters as there are to be.
func (l *load) dead(ctx context.Context, c *yard.Client) ([]string, error) {
	tasks := make([]yard.Task, l.tasks)
	for i := range tasks {
		tasks[i] = yard.Task{Type: typeName(0), Tasklist: deadLetterTasklist, Payload: filler, Retry: &yard.RetryPolicy{MaxAttempts: 1}}
	}
	died, err := c.SubmitMany(ctx, tasks)
	if err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	return died, waitFor(ctx, stallAfter, 100*time.Millisecond, func() (bool, string, error) {
		all, err := c.CountDeadLetters(ctx, yard.DeadLetterFilter{Tasklist: deadLetterTasklist}, 0)
		if err != nil {
			return false, "", fmt.Errorf("count the dead letters: %w", err)
		}
		n := int64(0)
		for _, some := range all {
			n += some.Letters
		}
		return n == int64(l.tasks), fmt.Sprintf("%d of %d tasks are dead letters", n, l.tasks), nil
	})
}

// bringBack redrives all letters.
func (l *load) bringBack(ctx context.Context, c *yard.Client, out *report.Redrive) error {
	began := time.Now()
	did, err := c.Redrive(ctx, yard.RedriveOptions{
		Filter: yard.DeadLetterFilter{Tasklist: deadLetterTasklist}, Rate: max(w12RedriveRate/l.target.slower, 1), By: "yard bench",
	})
	if err != nil {
		return fmt.Errorf("redrive: %w", err)
	}
	out.PerSecond = report.Round(float64(did.Redriven) / time.Since(began).Seconds())
	if did.Redriven != int64(out.DeadLetters) {
		return fmt.Errorf("%d of %d dead letters came back: %+v", did.Redriven, out.DeadLetters, did)
	}
	return nil
}
