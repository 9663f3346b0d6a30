package demo

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

const (
	lookUpsAtOnce = 16
	lookUpEvery   = 100 * time.Millisecond // between rounds
)

// errForGood marks the failures that no retry can mend; handlers wrap it in
// yard.NonRetryable.
var errForGood = errors.New("it cannot succeed")

// ledger is what one tenant itself saw of its tasks: what was accepted, and what
// its handlers did. Beside that lookUp notes what the engine says at the end, so the two can be
// compared. It is safe for concurrent use.
type ledger struct {
	// began separates tasks of this run from those an earlier one left behind.
	began time.Time

	mu      sync.Mutex
	tasks   map[string]*entry
	counts  counts
	waits   map[string][]time.Duration // by task type: submit → start
	ordered []*entry                   // accepted tasks, oldest first
}

// entry is one task.
type entry struct {
	id        string
	kind      *kind // nil until it is accepted
	sentAt    time.Time
	createdAt time.Time // as its attempts report
	startedAt time.Time // of the first attempt
	running   int
	successes int
	end       ending // of an accepted task
}

// ending is what the engine says of a task at the end.
type ending struct {
	// state is unspecified where the task was not found or no one answered.
	state yardv1.TaskState
	// lost: the engine knows no such task.
	lost bool
	// ends is how many final steps its history has.
	ends int
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

// finished is how many tasks are over, as far as the tenant knows.
func (c counts) finished() int { return c.succeeded + c.givenUp + c.cancelled }

func newLedger(began time.Time) *ledger {
	return &ledger{began: began, tasks: map[string]*entry{}, waits: map[string][]time.Duration{}}
}

func (l *ledger) entry(id string) *entry {
	e := l.tasks[id]
	if e == nil {
		e = &entry{id: id}
		l.tasks[id] = e
	}
	return e
}

// accept records the ids of tasks of a kind that were handed in at sentAt. Attempts may
// have begun before: the answer to a submit can be slower than a waiting worker.
func (l *ledger) accept(k *kind, ids []string, sentAt time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		e := l.entry(id)
		if e.kind != nil {
			l.counts.twice++
			continue
		}
		e.kind, e.sentAt = k, sentAt
		l.counts.accepted++
		l.ordered = append(l.ordered, e)
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

// measure notes how long a task waited, once both ends are known. The wait of a delayed task says nothing about the
// engine.
func (l *ledger) measure(e *entry) {
	if e.kind == nil || e.kind.delay > 0 || e.startedAt.IsZero() {
		return
	}
	l.waits[e.kind.Name] = append(l.waits[e.kind.Name], e.startedAt.Sub(e.sentAt))
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

// waitReport is how long tasks of a type waited from submit to start, if they were not delayed.
type waitReport struct {
	Type  string  `json:"type"`
	Tasks int     `json:"tasks"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// wait is how long tasks of a type waited for their start.
func (l *ledger) wait(taskType string) waitReport {
	l.mu.Lock()
	waits := slices.Clone(l.waits[taskType])
	l.mu.Unlock()
	slices.Sort(waits)
	return waitReport{
		Type: taskType, Tasks: len(waits),
		P50: quantile(waits, 0.5), P95: quantile(waits, 0.95), P99: quantile(waits, 0.99), Max: quantile(waits, 1),
	}
}

// quantile returns the duration that the fraction q of sorted durations does not exceed, in ms. 0 when there are none.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return float64(sorted[max(rank, 1)-1].Microseconds()) / 1000
}

// lookUp asks for every accepted task, and in further rounds for those not finished, until all have
// finished, or none more has for so long, or ctx ends. It counts the finished ones in done. All producers have ended.
func (l *ledger) lookUp(ctx context.Context, get getter, stall time.Duration, done *atomic.Int64) {
	pending, grew := slices.Clone(l.ordered), time.Now()
	for {
		// A round ends early where the engine does not answer, which takes long to find out.
		_ = parallel.Each(ctx, len(pending), lookUpsAtOnce, func(ctx context.Context, i int) error {
			err := pending[i].end.ask(ctx, get, pending[i].id)
			if pending[i].end.state.Finished() {
				done.Add(1)
			}
			return err
		})
		before := len(pending)
		pending = slices.DeleteFunc(pending, func(e *entry) bool { return e.end.state.Finished() })
		if len(pending) < before {
			grew = time.Now()
		}
		if len(pending) == 0 || time.Since(grew) > stall || !backoff.Sleep(ctx, lookUpEvery) {
			return
		}
	}
}

// getter asks the engine for one task.
type getter func(ctx context.Context, id string) (*yardv1.Task, error)

// ask notes what the engine says of the task now; an error means that it says nothing.
func (e *ending) ask(ctx context.Context, get getter, id string) error {
	task, err := get(ctx, id)
	switch {
	case err == nil:
		*e = ending{state: task.State, ends: finalSteps(task)}
	case fault.CodeOf(err) == fault.NotFound:
		e.state, e.lost = yardv1.TaskState_TASK_STATE_UNSPECIFIED, true
	default:
		return err
	}
	return nil
}

func finalSteps(task *yardv1.Task) int {
	n := 0
	for _, e := range task.Events {
		switch e.Kind {
		case yardv1.TaskEventKind_TASK_EVENT_KIND_COMPLETED,
			yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD,
			yardv1.TaskEventKind_TASK_EVENT_KIND_CANCELLED,
			yardv1.TaskEventKind_TASK_EVENT_KIND_EXPIRED:
			n++
		}
	}
	return n
}
