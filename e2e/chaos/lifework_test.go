package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

const (
	lifeWorkers, lifeConcurrency = 4, 60
	// goneType is the error type of failures that are final.
	goneType = "final"
)

// hire starts the workers.
func (l *life) hire(ctx context.Context, busy *sync.WaitGroup) {
	l.t.Helper()
	for i := range lifeWorkers {
		n, kill := 0, func() {}
		start := func() {
			n++
			kill = l.worker(ctx, busy, fmt.Sprintf("worker-%d-%d", i, n))
		}
		start()
		l.crew = append(l.crew, func() {
			kill()
			start()
		})
	}
}

// worker runs until it is killed: its handlers end at once, and it says nothing more.
func (l *life) worker(ctx context.Context, busy *sync.WaitGroup, name string) (kill func()) {
	l.t.Helper()
	dead := make(chan struct{})
	client := l.cluster.Client(domain)
	w := yard.NewWorker(client, tasklist, yard.WithIdentity(name), yard.WithConcurrency(lifeConcurrency), yard.WithPollWait(2*time.Second), yard.WithLogger(slog.New(slog.DiscardHandler)))
	for _, typ := range []string{plainLife, beatingLife, slowLife, goneLife} {
		w.HandleFunc(typ, func(ctx context.Context, a *yard.Attempt) (yard.Payload, error) {
			var in lifeInput
			if err := a.Payload.Decode(&in); err != nil {
				return yard.Payload{}, err
			}
			r, o, err := l.begin(in, a)
			if err == nil {
				err = l.work(ctx, o, dead)
			}
			l.ended(r, o, err)
			if errors.Is(err, errWanted) {
				client.Close() // its outcome goes nowhere
			}
			if err != nil {
				return yard.Payload{}, err
			}
			return yard.NewPayload(r.result)
		})
	}
	w.HandleFunc(calledLife, func(_ context.Context, a *yard.Attempt) (yard.Payload, error) { return yard.Payload{}, l.called(a) })
	return working(ctx, busy, w, client, dead)
}

// begin notes that a handler runs, and takes what is to become of it.
func (l *life) begin(in lifeInput, a *yard.Attempt) (*lifeRun, *lifeTask, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &lifeRun{value: in, id: a.TaskID, grant: a.Number, began: time.Now()}
	r.result = fmt.Sprintf("%s/%s/%d", in, a.TaskID, len(l.runs))
	l.runs = append(l.runs, r)
	o := l.tasks[in.N]
	if o == nil {
		return r, nil, nil
	}
	if o.order != "" && o.fate == unsure && o.id == "" {
		o.id = a.TaskID
	}
	switch {
	case o.snoozes > 0:
		o.snoozes--
		return r, o, yard.Snooze(soonest+o.takes, "not yet")
	case o.fails > 0:
		o.fails--
		return r, o, errors.New("the first attempts fail")
	case o.deaths > 0:
		o.deaths--
		if o.blocks {
			l.later(lifeJob{do: unblock, id: a.TaskID, n: o.n})
		}
		return r, o, yard.NonRetryable(finalError{})
	}
	return r, o, nil
}

type finalError struct{}

func (finalError) Error() string     { return "it is final" }
func (finalError) ErrorType() string { return goneType }

// work takes its time; some attempts take more than they have.
func (l *life) work(ctx context.Context, o *lifeTask, dead <-chan struct{}) error {
	takes := time.Millisecond
	if o != nil {
		takes = o.takes
		l.mu.Lock()
		if o.sleeps > 0 {
			o.sleeps--
			takes = 2 * slowAttempt
		}
		l.mu.Unlock()
	}
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-dead:
		return errWanted
	}
}

func (l *life) ended(r *lifeRun, _ *lifeTask, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.ended, r.succeeded = time.Now(), err == nil
}
