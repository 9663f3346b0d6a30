package demo

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// errForGood marks the failures that no retry can mend; handlers wrap it in
// yard.NonRetryable.
var errForGood = errors.New("it cannot succeed")

// ledger is what one tenant itself saw of its tasks: what was accepted, and what
// its handlers did. It knows nothing of the engine, so the two can be compared.
// It is safe for concurrent use.
type ledger struct {
	// began tells tasks of this run from what an earlier one left behind.
	began time.Time

	mu      sync.Mutex
	tasks   map[string]*entry
	counts  counts
	waits   map[string][]time.Duration // by task type: submit → start
	ordered []string                   // accepted ids, oldest first
}

// entry is one task.
type entry struct {
	taskType string
	accepted bool
	// immediate tasks were not delayed, so that the wait for their start tells
	// something about the engine.
	immediate bool
	sentAt    time.Time
	createdAt time.Time // as its attempts tell
	startedAt time.Time // of the first attempt
	running   int
	successes int
}

// counts are a ledger's sums. Every number only grows, but running.
type counts struct {
	accepted  int // tasks
	refused   int // tasks that were surely not accepted
	unsure    int // tasks whose submit ended as UNKNOWN
	twice     int // ids answered for two tasks
	running   int
	most      int // handlers running at once, ever
	succeeded int // attempts
	failed    int // attempts
	retried   int // attempts after the first
	givenUp   int // tasks whose last allowed attempt failed
	cancelled int // tasks
	overlaps  int // attempts begun while another of the same task ran
}

// finished is how many tasks are over, as far as the tenant can tell.
func (c counts) finished() int { return c.succeeded + c.givenUp + c.cancelled }

func newLedger(began time.Time) *ledger {
	return &ledger{began: began, tasks: map[string]*entry{}, waits: map[string][]time.Duration{}}
}

func (l *ledger) entry(id string) *entry {
	e := l.tasks[id]
	if e == nil {
		e = &entry{}
		l.tasks[id] = e
	}
	return e
}

// accept records the ids of tasks that were handed in at sentAt. Attempts may
// have begun before: the answer to a submit can be slower than a waiting worker.
func (l *ledger) accept(tasks []yard.Task, ids []string, sentAt time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, id := range ids {
		e := l.entry(id)
		if e.accepted {
			l.counts.twice++
			continue
		}
		e.accepted, e.sentAt, e.taskType = true, sentAt, tasks[i].Type
		e.immediate = tasks[i].Delay == 0 && tasks[i].RunAt.IsZero()
		l.counts.accepted++
		l.ordered = append(l.ordered, id)
		l.measure(e)
	}
}

// refuse records tasks that were not accepted, or, if unsure, perhaps were.
func (l *ledger) refuse(n int, unsure bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if unsure {
		l.counts.unsure += n
	} else {
		l.counts.refused += n
	}
}

// cancel records that n waiting tasks were cancelled.
func (l *ledger) cancel(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.cancelled += n
}

// measure notes how long a task waited, once both ends are known.
func (l *ledger) measure(e *entry) {
	if !e.accepted || !e.immediate || e.startedAt.IsZero() {
		return
	}
	l.waits[e.taskType] = append(l.waits[e.taskType], e.startedAt.Sub(e.sentAt))
}

// watch is the middleware of the tenant's workers.
func (l *ledger) watch(next yard.HandlerFunc) yard.HandlerFunc {
	return func(ctx context.Context, a *yard.Attempt) (result yard.Payload, err error) {
		l.start(a, time.Now())
		panicked := true // unless the handler returns
		defer func() { l.end(a, panicked, err) }()
		result, err = next(ctx, a)
		panicked = false
		return result, err
	}
}

func (l *ledger) start(a *yard.Attempt, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.running++
	l.counts.most = max(l.counts.most, l.counts.running)
	e := l.entry(a.TaskID)
	e.createdAt = a.CreatedAt
	if e.running++; e.running > 1 {
		l.counts.overlaps++
	}
	if a.Failures > 0 {
		l.counts.retried++
	}
	if e.startedAt.IsZero() {
		e.startedAt = now
		l.measure(e)
	}
}

func (l *ledger) end(a *yard.Attempt, panicked bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.running--
	e := l.entry(a.TaskID)
	e.running--
	if err == nil && !panicked {
		e.successes++
		l.counts.succeeded++
		return
	}
	l.counts.failed++
	if a.Last() || errors.Is(err, errForGood) {
		l.counts.givenUp++
	}
}

func (l *ledger) snapshot() counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// wait returns how long tasks of a type waited for their start, the shortest wait first.
func (l *ledger) wait(taskType string) []time.Duration {
	l.mu.Lock()
	waits := slices.Clone(l.waits[taskType])
	l.mu.Unlock()
	slices.Sort(waits)
	return waits
}

// quantile returns the duration that the fraction q of sorted durations does not exceed. 0 when there are none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// accepted returns all accepted ids, oldest first.
func (l *ledger) accepted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ordered)
}

// successes is how many attempts of a task succeeded.
func (l *ledger) successes(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.tasks[id]; e != nil {
		return e.successes
	}
	return 0
}

// unaccepted counts the tasks that ran without being accepted: leftovers of an
// earlier run on the same data, and those that nothing explains.
func (l *ledger) unaccepted() (leftovers, unexplained int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.tasks {
		switch {
		case e.accepted:
		case e.createdAt.Before(l.began.Truncate(time.Millisecond)): // all that its time tells
			leftovers++
		default:
			unexplained++
		}
	}
	return leftovers, unexplained
}
