package yard

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

const (
	// slowFlight is how long a request may hold up the next one. It is longer than a healthy engine takes, so batches still gather; a request that
	// waits for an unwell partition leaves the others' outcomes their way.
	slowFlight = 250 * time.Millisecond
	// flightsMax bounds the requests under way, so that an absent engine is not met by ever more of them.
	flightsMax = 16
)

// outcome is a completion or a failure on its way to the engine.
type outcome struct {
	attempt    *activeAttempt
	completion *yardv1.Completion
	failure    *yardv1.Failure
	// size is its encoded size, bytes.
	size int
}

// reporter sends outcomes in batches by group commit: while one request is under way the next one gathers. There is no linger timer; the first
// outcome of an idle worker leaves at once.
type reporter struct {
	log      *slog.Logger
	finished func([]outcome)
	send     func(context.Context, []outcome) ([]*yardv1.Verdict, error)

	mu    sync.Mutex
	queue []outcome
	// wake holds a token whenever the queue may be non-empty.
	wake chan struct{}
}

func newReporter(log *slog.Logger, finished func([]outcome), send func(context.Context, []outcome) ([]*yardv1.Verdict, error)) *reporter {
	return &reporter{log: log, finished: finished, send: send, wake: make(chan struct{}, 1)}
}

// add queues an outcome; it never blocks. The queue is bounded by the session, which stops polling when too much is unreported.
func (r *reporter) add(o outcome) {
	r.mu.Lock()
	r.queue = append(r.queue, o)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take removes the next request's worth from the queue.
func (r *reporter) take() []outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := fitting(len(r.queue), requestBytesMax, func(i int) int { return r.queue[i].size + taskOverhead })
	batch := r.queue[:n:n]
	r.queue = r.queue[n:]
	if len(r.queue) == 0 {
		r.queue = nil
	}
	return batch
}

// run sends until ctx ends, then waits for what is under way to give up.
func (r *reporter) run(ctx context.Context) {
	var flights sync.WaitGroup
	defer flights.Wait()
	seats := make(chan struct{}, flightsMax)
	slow := time.NewTimer(slowFlight)
	defer slow.Stop()
	for {
		batch := r.take()
		if len(batch) == 0 {
			select {
			case <-r.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		select {
		case seats <- struct{}{}:
		case <-ctx.Done():
			return
		}
		done := make(chan struct{})
		flights.Go(func() {
			defer close(done)
			r.deliver(ctx, batch)
			<-seats
		})
		slow.Reset(slowFlight)
		select {
		case <-done:
		case <-slow.C:
		case <-ctx.Done():
			return
		}
	}
}

// deliver sends a batch until each of its outcomes is finished or ctx ends.
func (r *reporter) deliver(ctx context.Context, batch []outcome) {
	for try := 0; len(batch) > 0; try++ {
		verdicts, err := r.send(ctx, batch)
		if fault.CodeOf(err) == fault.InvalidArgument && len(batch) > 1 {
			// One bad entry has the whole request refused: find it by halves.
			half := len(batch) / 2
			r.deliver(ctx, batch[:half:half])
			r.deliver(ctx, batch[half:])
			return
		}
		batch = r.sift(batch, verdicts, err, time.Now())
		if len(batch) == 0 || !pause(ctx, backoff(try, retryAfterOf(err))) {
			return
		}
	}
}

// sift removes the outcomes that need no repeat, and returns the rest.
func (r *reporter) sift(batch []outcome, verdicts []*yardv1.Verdict, err error, now time.Time) []outcome {
	var again []outcome
	done := make([]outcome, 0, len(batch))
	for i, o := range batch {
		var code, message string
		if err != nil {
			e := fault.From(err)
			code, message = string(e.Code), e.Message
		} else {
			code, message = verdicts[i].Code, verdicts[i].Message
		}
		if passing(code) && now.Before(o.attempt.expires) {
			again = append(again, o)
			continue
		}
		r.logRefusal(o, code, message)
		done = append(done, o)
	}
	if len(done) > 0 {
		r.finished(done)
	}
	return again
}

// passing reports whether an outcome with this verdict may yet be accepted. INTERNAL
// is among them: repeating an outcome is harmless, losing it costs an attempt.
func passing(code string) bool {
	switch c := fault.Code(code); c {
	case fault.Unknown, fault.Internal:
		return true
	default:
		return c.Retryable() || code != codeOK && !c.Known()
	}
}

func (r *reporter) logRefusal(o outcome, code, message string) {
	switch {
	case code == codeOK:
	case fault.Code(code) == fault.Stale, fault.Code(code) == fault.NotFound:
		r.log.Debug("an outcome came too late", "task_id", o.attempt.TaskID, "code", code, "reason", message)
	default:
		r.log.Error("an outcome was not taken", "task_id", o.attempt.TaskID, "code", code, "reason", message)
	}
}

// snoozed is what a handler returns that has nothing to do yet.
type snoozed struct {
	delay time.Duration
	why   string
}

func (e snoozed) Error() string { return e.why }

// Snooze is the error of a handler that has nothing to do yet, such as while what it asks after is not ready: the next attempt comes after d,
// 1 ms to 30 days, and no failure is counted. It counts as a delivery (RetryPolicy.MaxDeliveries). Why is for people, and in the task's
// history. Wrapped in NonRetryable or RetryAfter it is a failure as any other error.
func Snooze(d time.Duration, why string) error { return snoozed{d, why} }

// delayMS is a wait in ms, as the engine takes it.
func delayMS(d time.Duration) int64 { return milliseconds(min(max(d, time.Millisecond), delayMax)) }
