package load

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	payloadBytes = 256
	numberBytes  = 16 // of the payload are the number of the task, in hexadecimal digits
)

var filler = strings.Repeat("x", payloadBytes-numberBytes)

// ledger knows each task that was submitted, and when its handler began.
type ledger struct {
	// places bounds the tasks that wait for their handler.
	places *semaphore.Weighted

	mu         sync.Mutex
	tasks      []entry
	handled    int
	duplicates int
	delays     []time.Duration // since reset: from the submit, or from the due time, to the handler
	unknown    int             // handlers that got a payload of no task
}

// entry is one task.
type entry struct {
	from    time.Time // when it was submitted or is due
	handled bool
	placed  bool // it took a place
}

// newLedger bounds the tasks that wait.
func newLedger(waiting int) *ledger {
	return &ledger{places: semaphore.NewWeighted(int64(waiting))}
}

// next makes the payload of a task that is submitted now or, if due is not zero, runs then.
func (l *ledger) next(due time.Time, placed bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := due
	if due.IsZero() {
		from = time.Now()
	}
	l.tasks = append(l.tasks, entry{from: from, placed: placed})
	return fmt.Sprintf("%0*x", numberBytes, len(l.tasks)-1) + filler
}

// handle is the handler of all tasks.
func (l *ledger) handle(payload string) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(payload) != payloadBytes {
		l.unknown++
		return
	}
	i, err := strconv.ParseUint(payload[:numberBytes], 16, 32)
	if err != nil || int(i) >= len(l.tasks) {
		l.unknown++
		return
	}
	t := &l.tasks[i]
	if t.handled {
		l.duplicates++
		return
	}
	t.handled = true
	l.handled++
	l.delays = append(l.delays, now.Sub(t.from))
	if t.placed {
		l.places.Release(1)
	}
}

// reset forgets the delays, not the tasks.
func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delays = nil
}

// count is how many tasks were submitted and how many of them were handled.
func (l *ledger) count() (submitted, handled int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tasks), l.handled
}

// quantiles of the delays, in ms.
func (l *ledger) quantiles() (p50, p99 float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Quantile(l.delays, 0.5), Quantile(l.delays, 0.99)
}

// Quantile is a quantile of durations, in ms. It is 0 if there are none.
func Quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Microseconds()) / 1000
}

// drained returns when each task was handled. A task that is lost is an error.
func (l *ledger) drained(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	for {
		submitted, handled := l.count()
		if submitted == handled {
			return l.check()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d tasks were accepted, %d of them were handled within %v: %w", submitted, handled, drainWithin, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// check refuses payloads that were never sent.
func (l *ledger) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unknown > 0 {
		return fmt.Errorf("%d handlers got a payload that was never sent", l.unknown)
	}
	return nil
}
